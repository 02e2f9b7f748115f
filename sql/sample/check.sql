-- Whether every row came through, with every code.
-- in:  table, first (number of the first row looked at; rows that conditions changed have far higher ones), columns (names)
-- out: found (rows) and complete (rows without a missing code)
SELECT
    count(*) AS found,
    count(*) FILTER (
        WHERE TRUE
{% for column in columns %}
            AND {{ column }} IS NOT NULL
{% endfor %}
    ) AS complete
FROM {{ table }}
WHERE
    "row" >= {{ first }}
    AND "row" < {{ first }} + 8589934592
