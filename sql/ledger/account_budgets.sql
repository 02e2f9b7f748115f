-- Every debit of an account, in the order in which they were made.
-- in:  :account_id
-- out: release_id, name, version, state of each entry; kind, amount, delta of its debit; sliced: its configuration if it is
--      of a slice
SELECT
    release_id,
    name,
    version,
    state,
    kind,
    amount,
    delta,
    CASE WHEN instr(configuration, '"slice":') > 0 THEN configuration END AS sliced
FROM entry
WHERE account_id = :account_id
ORDER BY entry_id
