-- Rows that are like others of their family, in everything but their number and their place in it.
-- in:  staged (table with the columns row, a0, a1, ...), listed (table with the columns row and donor)
-- out: one row a listed row
INSERT INTO {{ staged }}
SELECT
    s.* REPLACE (l."row" AS "row", s.rank + l."row" - l.donor AS rank)
FROM {{ listed }} AS l
INNER JOIN {{ staged }} AS s
    ON s."row" = l.donor
