SELECT
    entry.name,
    entry.version,
    entry.state,
    CASE WHEN price.amount IS NULL THEN entry.kind ELSE 'gdp' END AS kind,
    ifnull(price.amount, entry.amount) AS amount,
    entry.delta,
    CASE WHEN instr(entry.configuration, '"slice":') > 0 THEN entry.configuration END AS sliced
FROM entry
LEFT JOIN price USING (entry_id)
WHERE entry.account_id = :account_id
ORDER BY entry.entry_id
