-- One part of the keys, in their order.
-- in:  table, text (of a thing, as bytes), start, stop (places; stop is not included)
-- out: one row per key: key BLOB, units BIGINT
SELECT
    {{ text }} AS key,
    units
FROM {{ table }}
WHERE place >= {{ start }}
AND place < {{ stop }}
ORDER BY
    place
