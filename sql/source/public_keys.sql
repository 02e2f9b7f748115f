{#- The keys of a public table as text, by groups.
    in:  table (as of public_rows), keys (how many columns)
    out: code and k0, k1, ... (VARCHAR), by code and the bytes of the keys
#}
SELECT
    code,
{% for place in range(keys) %}
    decode(k{{ place }}) AS k{{ place }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ table }}
ORDER BY ALL
