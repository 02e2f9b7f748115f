{#- A CSV relation whose text is read as its types, to put after FROM. Text that cannot be read stops the
    statement: the owner has asked for that (on_error="fail"), although it tells that such a row exists.
    in:  relation (what stands after FROM), columns (<expression> AS <column name>)
    out: the same rows, typed
#}
(
    SELECT
{% for column in columns %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM {{ relation }}
)
