{#- Rows of a table, to put after FROM, with the places that the table has them at.
    in:  table, start (place of the first row; none: all rows), stop (the place after the last one)
    out: the columns of the table, rowid
#}
(
    SELECT
        *,
        rowid AS rowid
    FROM {{ table }}
{% if start is not none %}
    WHERE rowid >= {{ start }}
    AND rowid < {{ stop }}
{% endif %}
)
