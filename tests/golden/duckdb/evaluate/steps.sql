CREATE TEMP TABLE staged AS
SELECT
    part,
    row_number() OVER run AS place,
    count(*) OVER (PARTITION BY part, unit) AS most,
    moment - lag(moment) OVER run AS since,
    k0,
    lag(k0) OVER run AS p0,
    k1,
    lag(k1) OVER run AS p1
FROM families
WHERE isfinite(moment)
WINDOW run AS (
    PARTITION BY part, unit
    ORDER BY
        moment,
        k0,
        k1
)
