-- Ordered pairs of distinct rows of one family, by a code of the first and a code of the second.
-- Each of the n * (n - 1) pairs of a family counts the weight w of a row, divided by n - 1 and rounded down: all count
-- n * w at most, and no product passes BIGINT. The rows of a family are counted by code, never pair by pair.
-- in:  table (the encoded source: u, which family a row is of, n, the rows of the family, and w),
--      first, second (the codes of a row: BIGINT expressions of its columns),
--      counted (of a family its rows with one code: <expression> AS a<code> or b<code>),
--      cells (of the result: a, b, and product: the columns of their rows)
-- out: one row per cell: a BIGINT, b BIGINT, n BIGINT (the sum of the weights)
WITH coded AS (
    SELECT
        u,
        CAST(w // (n - 1) AS BIGINT) AS v,
        {{ first }} AS a,
        {{ second }} AS b
    FROM {{ table }}
    WHERE n > 1
    AND w > 0
),
families AS (
    SELECT
{% for column in counted %}
        {{ column }},
{% endfor %}
        v
    FROM coded
    GROUP BY
        u,
        v
),
-- A row with both codes is paired with itself: that is taken out again.
pairs AS (
    SELECT
        unnest([
{% for cell in cells %}
            CAST({{ cell.a }} AS BIGINT){% if not loop.last %},{% endif %}

{% endfor %}
        ]) AS a,
        unnest([
{% for cell in cells %}
            CAST({{ cell.b }} AS BIGINT){% if not loop.last %},{% endif %}

{% endfor %}
        ]) AS b,
        unnest([
{% for cell in cells %}
            COALESCE(sum(v * {{ cell.product }}), 0){% if not loop.last %},{% endif %}

{% endfor %}
        ]) AS n
    FROM families
    UNION ALL
    SELECT
        a,
        b,
        -sum(v) AS n
    FROM coded
    GROUP BY
        a,
        b
)
SELECT
    a,
    b,
    CAST(sum(n) AS BIGINT) AS n
FROM pairs
GROUP BY
    a,
    b
