-- Give rows that cannot be other values within the same codes: their random bits come from another number.
-- in:  staged (table with the columns row, a0, a1, ...), number (the column that bits come from), step (added to it),
--      impossible (query of the numbers of these rows)
-- out: nothing
UPDATE {{ staged }}
SET {{ number }} = {{ number }} + {{ step }}
WHERE "row" IN (
{{ impossible }}
)
