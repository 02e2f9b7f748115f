-- Numbers of rows, to stand after FROM, in blocks of 256. DISTINCT, because many cores read its blocks side by
-- side and only one reads range(). Lists stand beside blocks, not rows: a join copies them for every 2048 of what it
-- joins, but rows that come out of one block share them.
-- in:  first, rows (how many; an expression), steps (by node: lists (to stand after FROM), columns)
-- out: a subquery with the column range, and those of the lists
(
    SELECT
{% for step in steps %}
{% for column in step.columns %}
        {{ column }},
{% endfor %}
{% endfor %}
        unnest(range(
            {{ first }} + block * 256,
            {{ first }} + least((block + 1) * 256, {{ rows }})
        )) AS range
    FROM (
        SELECT DISTINCT range AS block
        FROM range(0, ({{ rows }} + 255) // 256)
    )
{% for step in steps %}
    CROSS JOIN {{ step.lists }} AS {{ step.name }}_lists
{% endfor %}
)
