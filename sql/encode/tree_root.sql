-- The kept rows of the root of a tree of tables: one of each unit, that with the least codes (private side).
-- in:  coded (a query: key, whose row it is, as bytes, and codes),
--      codes (names of codes, and of the moment if rows have an order),
--      secret (the key of the draw), weight (of a unit)
-- out: key, the codes, h UBIGINT (the lot of the row), n INTEGER (1), w INTEGER (its weight)
WITH coded AS (
{{ coded }}
),
ranked AS (
    SELECT
        key,
{% for code in codes %}
        {{ code }},
{% endfor %}
        row_number() OVER (
            PARTITION BY
                key
{% if codes %}
            ORDER BY
{% endif %}
{% for code in codes %}
                {{ code }}{% if not loop.last %},{% endif %}

{% endfor %}
        ) AS copy
    FROM coded
    WHERE key IS NOT NULL
)
SELECT
    key,
{% for code in codes %}
    {{ code }},
{% endfor %}
    {{ dialect.lot(["key"], "key", secret) }} AS h,
    1 AS n,
    {{ weight }} AS w
FROM ranked
WHERE copy = 1
