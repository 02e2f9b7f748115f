{#- Staged rows of a period with their persons, to put after FROM.
    in:  staged (table), numbered (table: row, person), kept (of persons of the period before:
         earlier.<column> AS <name>; often none), past (what stands after FROM: the rows of the period before; none
         without kept), own (the id of the person of a row, as bytes), id (that of a row of the period before)
    out: the columns of staged rows, person and, with past, stays BOOLEAN and the columns kept
#}
(
    SELECT
        s.*,
        n.person{% if past %},
        {{ id }} IS NOT NULL AS stays{% for column in kept %},
        {{ column }}{% endfor %}{% endif %}

    FROM {{ staged }} AS s
    JOIN {{ numbered }} AS n
        ON s."row" = n."row"
{% if past %}
    LEFT JOIN {{ past }} AS earlier
        ON {{ own }} = {{ id }}
{% endif %}
)
