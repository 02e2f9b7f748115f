-- All rows of a public table as text, which every type is read back from without loss.
-- in:  rows (what stands after FROM), columns (quoted names)
-- out: c0, c1, ...
SELECT
{% for column in columns %}
    CAST({{ column }} AS VARCHAR) AS c{{ loop.index0 }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ rows }}
