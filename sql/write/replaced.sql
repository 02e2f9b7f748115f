-- How many staged rows conditions gave other codes, and how many there are.
-- in:  staged, apart (numbers of a part of the rows), step (added to row each time it was given other values), within (so
--      often within its codes, before any got others), drawn (rows that were drawn first for a part)
-- out: replaced, staged_rows
SELECT
    count(*) FILTER (
        WHERE "row" % {{ apart }} // {{ step }} > {{ within }} OR "row" % {{ apart }} % {{ step }} >= {{ drawn }}
    ) AS replaced,
    count(*) AS staged_rows
FROM {{ staged }}
