-- Of which type all values of text columns can be read, for files that state no types.
-- Digits behind a leading zero are a code, not a number.
-- in:  relation (what stands after FROM), columns (text columns)
-- out: for each column BIGINT counts: g<i> (values given), i<i> (whole numbers), n<i> (numbers), d<i> (dates), t<i> (moments)
SELECT
{% for column in columns %}
    count({{ column }}) AS g{{ loop.index0 }},
    count(TRY_CAST(trim({{ column }}) AS BIGINT)) FILTER (WHERE NOT regexp_matches({{ column }}, '[.eE]|^ *[-+]?0[0-9]')) AS i{{ loop.index0 }},
    count(TRY_CAST(trim({{ column }}) AS DOUBLE)) FILTER (WHERE NOT regexp_matches({{ column }}, '^ *[-+]?0[0-9]')) AS n{{ loop.index0 }},
    count(TRY_CAST(trim({{ column }}) AS DATE)) FILTER (WHERE NOT contains({{ column }}, ':')) AS d{{ loop.index0 }},
    count(TRY_CAST(trim({{ column }}) AS TIMESTAMP)) AS t{{ loop.index0 }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ relation }}
