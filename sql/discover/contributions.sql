-- Units by their number of rows, more than the bound counted as the bound.
-- in:  relation (what stands after FROM), unit (whose row it is, as bytes), most (the bound)
-- out: one row per number that occurs: thing BIGINT (from 0: one row less than the unit has), n BIGINT (units)
WITH named AS (
    SELECT
        {{ unit }} AS unit
    FROM {{ relation }}
),
bounded AS (
    SELECT
        LEAST(count(*), {{ most }}) - 1 AS thing
    FROM named
    WHERE unit IS NOT NULL
    GROUP BY
        unit
)
SELECT
    CAST(thing AS BIGINT) AS thing,
    CAST(count(*) AS BIGINT) AS n
FROM bounded
GROUP BY
    thing
