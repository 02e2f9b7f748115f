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
