WITH held AS (
    SELECT
        part,
        n,
        k1 AS code,
        CAST(count(*) AS DOUBLE) AS c
    FROM families
    GROUP BY
        part,
        unit,
        n,
        k1
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
