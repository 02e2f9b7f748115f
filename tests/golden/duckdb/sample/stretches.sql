(
    SELECT
        (CAST(parent AS UBIGINT) << 2) | CAST(touched AS UBIGINT) AS key,
        low,
        high,
        value
    FROM (
        SELECT
            parent,
            low,
            high,
            value,
            unnest(range(
                CAST(low >> 30 AS BIGINT),
                CAST(high >> 30 AS BIGINT) + 1
            )) AS touched
        FROM lines
    )
)
