-- Rows that are like others of their unit, in everything but their number (and their place in the family).
-- in:  staged (table with the columns row, a0, a1, ...), listed (table with the columns row and donor),
--      ranked (0 or 1: rank is the place in the family)
-- out: one row a listed row
INSERT INTO {{ staged }}
SELECT
    s.* REPLACE (l."row" AS "row"{% if ranked %}, s.rank + l."row" - l.donor AS rank{% endif %})
FROM {{ listed }} AS l
INNER JOIN {{ staged }} AS s
    ON s."row" = l.donor
