UPDATE account
SET
    kind = :kind,
    unit = :unit,
    granted_epsilon = :granted_epsilon,
    granted_delta = :granted_delta,
    limit_amount = :limit_amount,
    limit_delta = :limit_delta,
    spent_amount = :spent_amount,
    spent_delta = :spent_delta
WHERE account_id = :account_id
