-- Whether an account that was priced anew has running totals of a name from before.
-- in:  :account_id, :name
-- out: their number as "entries"
SELECT count(*) AS entries
FROM entry
WHERE account_id = :account_id
    AND name = :name
    AND kind = 'zcdp'
    AND instr(configuration, '"running_total":') > 0
