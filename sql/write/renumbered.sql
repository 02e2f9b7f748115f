-- New numbers for rows.
-- in:  staged (table with the columns row, a0, a1, ...), listed (table with the columns row and donor, the new number)
-- out: nothing
UPDATE {{ staged }} AS s
SET "row" = l.donor
FROM {{ listed }} AS l
WHERE s."row" = l."row"
