INSERT INTO entry (
    release_id,
    account_id,
    name,
    version,
    configuration,
    configuration_hash,
    kind,
    amount,
    delta,
    debited_at
)
VALUES (
    :release_id,
    :account_id,
    :name,
    :version,
    :configuration,
    :configuration_hash,
    :kind,
    :amount,
    :delta,
    :debited_at
)
