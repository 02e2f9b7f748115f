{#- Whether the keys of a public table tell its rows apart, and how many groups it has.
    in:  table (as of public_rows), keys (how many columns)
    out: total, without (rows without a key), different (keys), codes (groups)
#}
SELECT
    count(*) AS total,
    count(*) FILTER (WHERE {% for place in range(keys) %}k{{ place }} IS NULL{% if not loop.last %} OR {% endif %}{% endfor %}) AS without,
    count(DISTINCT ({% for place in range(keys) %}k{{ place }}{% if not loop.last %}, {% endif %}{% endfor %})) AS different,
    COALESCE(max(code) + 1, 0) AS codes
FROM {{ table }}
