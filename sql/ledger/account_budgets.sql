-- Every debit of an account, in the order in which they were made.
-- in:  :account_id
-- out: name, version, state of each entry; kind, amount, delta of its debit, or of its price if the account was
--      priced anew; sliced: its configuration if it is of a slice
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
