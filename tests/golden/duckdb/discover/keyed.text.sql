WITH named AS (
    SELECT
        "b""" AS c0
    FROM src
),
told AS (
    SELECT
        encode(CASE WHEN regexp_full_match(substr(c0, 1, 2), '[ab]*') THEN CASE WHEN length(c0) < 2 THEN c0 || chr(3) ELSE substr(c0, 1, 2) END END) AS k0,
        FALSE AS missing
    FROM named
),
placed AS (
    SELECT
        k0,
        CASE
            WHEN missing THEN 2
            WHEN k0 IS NULL THEN 1
            ELSE 0
        END AS state
    FROM told
),
settled AS (
    SELECT
        CASE WHEN state = 0 THEN k0 END AS k0,
        state
    FROM placed
)
SELECT
    k0,
    state,
    CAST(count(*) AS BIGINT) AS n
FROM settled
GROUP BY
    k0,
    state
