-- The debit of a release.
-- in:  :release_id, :account_id, :name, :version, :configuration, :configuration_hash, :kind,
--      :amount, :delta, :debited_at
-- out: one row of entry
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
