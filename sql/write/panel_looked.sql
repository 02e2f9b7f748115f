{#- Staged rows of a period with what their persons keep, to put after FROM.
    in:  staged (table), table (row and the columns kept; of persons of the period before alone), kept (names of columns)
    out: the columns of staged rows, stays BOOLEAN and the columns kept
#}
(
    SELECT
        s.*,
        k."row" IS NOT NULL AS stays{% for column in kept %},
        k.{{ column }}{% endfor %}

    FROM {{ staged }} AS s
    LEFT JOIN {{ table }} AS k
        ON s."row" = k."row"
)
