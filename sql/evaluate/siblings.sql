-- How often rows of one unit have one code: sums over units of what each unit's histogram of codes says, so that
-- no pair of rows is made. A unit of n rows, c of them with a code, has c (c - 1) of n (n - 1) ordered pairs that agree.
-- in:  table (of families.sql), code (its column)
-- out: one row per part, octave of the number of rows, and code: persons (sum of c / n), and of units of several
--      rows: several (the same), agreeing (sum of c (c - 1) / (n (n - 1))), squares (sum of (c / n)^2); DOUBLE
WITH held AS (
    SELECT
        part,
        n,
        {{ code }} AS code,
        CAST(count(*) AS DOUBLE) AS c
    FROM {{ table }}
    GROUP BY
        part,
        unit,
        n,
        {{ code }}
)
SELECT
    part,
    CAST(floor(log2(n)) AS INTEGER) AS octave,
    code,
    sum(c / n) AS persons,
    coalesce(sum(c / n) FILTER (WHERE n > 1), 0) AS several,
    coalesce(sum(c / n * (c - 1) / (n - 1)) FILTER (WHERE n > 1), 0) AS agreeing,
    coalesce(sum(c / n * c / n) FILTER (WHERE n > 1), 0) AS squares
FROM held
GROUP BY
    part,
    octave,
    code
