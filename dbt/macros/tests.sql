{#- The release that a tested model is, by the name that dp_release gave it. -#}
{% macro release_of(relation) -%}
  {%- for node in (graph.nodes.values() if execute else []) if node.resource_type == 'model'
      and (node.alias or node.name) | lower == relation.identifier | lower
      and node.schema | lower == relation.schema | lower
      and node.config.materialized == 'dp_release' -%}
    {%- set options = node.config.meta.get('dpsyn') or {} -%}
    {%- if node.depends_on.nodes | length > 1 -%}
      {{ return(options.get('name') ~ '.' ~ relation.identifier) }}
    {%- endif -%}
    {{ return(options.get('name') or dpsyn_sql.default_name(node)) }}
  {%- endfor -%}
  {{ return(relation.identifier) }}
{%- endmacro %}


{% macro default_name(node) -%}
  {{ return(node.name ~ ('_v' ~ node.version if node.version else '')) }}
{%- endmacro %}


{#- The stored release of a name; names are compared as the database compares them. -#}
{% macro release_named(home, name) -%}
  select
        release,
        certificate
    from {{ home }}.releases
    where lower(name) = lower({{ dpsyn_sql.text(name) }})
{%- endmacro %}


{% macro text(value) -%}
  {{ return("'" ~ (value | string | replace("'", "''")) ~ "'") }}
{%- endmacro %}


{#- The attributes of a release that are no columns of its table, such as the number of rows of a person. -#}
{% macro hidden_names(certificate) -%}
  coalesce(from_json({{ certificate }} -> '$.public_facts.families.hidden', '["VARCHAR"]'), [])
{%- endmacro %}


{#- A number from the arguments of a test; YAML reads 1e-9 as text. -#}
{% macro limit(name, value) -%}
  {%- if not modules.re.fullmatch('[0-9]+([.][0-9]*)?([eE][-+]?[0-9]+)?', value | string) -%}
    {%- do exceptions.raise_compiler_error(name ~ " must be a number, not " ~ value) -%}
  {%- endif -%}
  {{ return("cast('" ~ value ~ "' as double)") }}
{%- endmacro %}
