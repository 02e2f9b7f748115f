-- One part of the keys, in their order.
-- in:  table, text (of a thing, as bytes), start, stop (places; stop is not included)
-- out: one row per key: thing BLOB, n BIGINT (units)
SELECT
    {{ text }} AS thing,
    n
FROM {{ table }}
WHERE place >= {{ start }}
AND place < {{ stop }}
ORDER BY
    place
