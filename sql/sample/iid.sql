-- Rows drawn independently of each other: of 32 random bits the first say which slot of the parents'
-- configuration is looked at, and the others whether its own value is drawn or its alias.
-- in:  started (query of rows with the lists of all nodes beside them), steps (by node: name, source, parent,
--      slot_bits, columns (names of its lists), packed_bits (of a value, if an entry of the list is a word; 0: there
--      are lists of thresholds, own values and aliases), value_bits, words), last (name of the last step), ordered (0
--      or 1), codes (<expression> AS a<i>)
-- out: a query with the columns row, a0, a1, ...; in the order of row if ordered, while rows are still words
WITH started AS (
{{ started }}
)
{%- for step in steps %}
,
{{ step.name }}_bits AS (
    SELECT
        *,
        CAST(hash(xor("row", {{ step.value_bits }})) >> 32 AS UINTEGER) AS bits,
        CAST(({{ step.parent }} << {{ step.slot_bits }}) | (bits >> {{ 32 - step.slot_bits }}) AS BIGINT) + 1 AS slot
    FROM {{ step.source }}
),
{{ step.name }} AS (
    SELECT
{% for word in step.words %}
        {{ word }},
{% endfor %}
{% for later in steps[loop.index:] %}
{% for column in later.columns %}
        {{ column }},
{% endfor %}
{% endfor %}
        "row"
    FROM (
        SELECT
            *,
{% if step.packed_bits %}
            CASE
                WHEN (bits & {{ 2 ** (32 - step.slot_bits) - 1 }}) < (entry & {{ 2 ** (33 - step.slot_bits) - 1 }})
                    THEN (entry >> {{ 33 - step.slot_bits }}) & {{ 2 ** step.packed_bits - 1 }}
                ELSE entry >> {{ 33 - step.slot_bits + step.packed_bits }}
            END AS value
        FROM (
            SELECT
                *,
                {{ step.columns[0] }}[slot] AS entry
            FROM {{ step.name }}_bits
        )
{% else %}
            CASE
                WHEN (bits & {{ 2 ** (32 - step.slot_bits) - 1 }}) < {{ step.columns[0] }}[slot] THEN {{ step.columns[1] }}[slot]
                ELSE {{ step.columns[2] }}[slot]
            END AS value
        FROM {{ step.name }}_bits
{% endif %}
    ) AS d
)
{%- endfor %}

SELECT
    CAST("row" AS BIGINT) AS "row",
{% for code in codes %}
    {{ code }}{% if not loop.last %},{% endif %}

{% endfor %}
{% if ordered %}
FROM (
    SELECT *
    FROM {{ last }}
    ORDER BY "row"
)
{% else %}
FROM {{ last }}
{% endif %}
