SELECT count(*) AS entries
FROM entry
WHERE account_id = :account_id
    AND name = :name
    AND kind = 'zcdp'
    AND instr(configuration, '"running_total":') > 0
