{#- The body of a release model: {{ dpsyn_sql.release(ref('people')) }}, or with several sources one table of a
    database. It puts the sources into the graph and compiles to a query of the released table alone, so
    `dbt show`, `dbt compile` and previews never read a source. -#}
{% macro release(source) -%}
  {%- set others = varargs -%}
  {{ return(dpsyn_sql.released(this)) }}
{%- endmacro %}


{% macro released(relation) -%}
  {{ return('select * from ' ~ dpsyn_sql.quoted(relation)) }}
{%- endmacro %}


{#- The full name of a relation, with quotes in its parts doubled. -#}
{% macro quoted(relation) -%}
  {%- set parts = [] -%}
  {%- for part in [relation.database, relation.schema, relation.identifier] if part is not none -%}
    {%- do parts.append('"' ~ (part | string | replace('"', '""')) ~ '"') -%}
  {%- endfor -%}
  {{ return(parts | join('.')) }}
{%- endmacro %}
