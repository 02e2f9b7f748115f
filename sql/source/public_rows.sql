{#- The rows of a public table with the text of their keys as bytes, and their groups: rows with equal columns
    are of one group, numbered from 0 in the order of the bytes of these columns.
    in:  table (to make), relation (what stands after FROM), keys (columns), by (columns)
    out: the table with k0, k1, ... (keys) and b0, b1, ... (by; all BLOB) and code (BIGINT)
#}
CREATE TEMPORARY TABLE {{ table }} AS
SELECT
{% for key in keys %}
    encode(CAST({{ key }} AS VARCHAR)) AS k{{ loop.index0 }},
{% endfor %}
{% for column in by %}
    encode(CAST({{ column }} AS VARCHAR)) AS b{{ loop.index0 }},
{% endfor %}
    dense_rank() OVER (ORDER BY
{% for column in by %}
        encode(CAST({{ column }} AS VARCHAR)) NULLS LAST{% if not loop.last %},{% endif %}

{% endfor %}
    ) - 1 AS code
FROM {{ relation }}
