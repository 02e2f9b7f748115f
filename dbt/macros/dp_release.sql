{% materialization dp_release, adapter='duckdb', supported_languages=['sql', 'python'] %}

  {%- set existing = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set source_relations = dpsyn_sql.checked_sources(existing) -%}
  {%- set unpaid = dpsyn_sql.is_unpaid() -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {#- The release reads and writes through its own connection, which sees only what is committed. -#}
  {% do adapter.commit() %}

  {% if unpaid and existing is not none %}
    {% call noop_statement('main', 'SKIP') -%}
      -- No release with --empty or --sample: the released table stays as it is.
    {%- endcall %}
  {% else %}
    {% call statement('main', language='python') -%}
      {{ dpsyn_sql.python_code(source_relations, unpaid) }}
    {%- endcall %}
    {% set outcome = dpsyn_sql.told() %}
    {% if unpaid %}
      {% call statement('create_empty', auto_begin=True) -%}
        create table {{ dpsyn_sql.quoted(this) }} (
          {%- for name, type in outcome.columns %}
          {{ name }} {{ type }}{{ ',' if not loop.last }}
          {%- endfor %}
        )
      {%- endcall %}
    {% endif %}
  {% endif %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {% do apply_grants(target_relation, config.get('grants'), should_revoke=False) %}
  {% do persist_docs(target_relation, model) %}
  {% do adapter.commit() %}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}


{#- Whether nothing may be charged: with --empty or --sample. The flags decide, never the number of rows. -#}
{% macro is_unpaid() %}
  {%- if flags.EMPTY or invocation_args_dict.get('sample') -%}
    {{ return(true) }}
  {%- endif -%}
  {{ return(false) }}
{% endmacro %}


{#- The relations to release: one table, or several that keys tie. Refuses whatever the model gets wrong, before
    anything is charged. -#}
{% macro checked_sources(existing) %}
  {%- set problems = [] -%}
  {%- set parents = [] -%}
  {%- for id in model.depends_on.nodes -%}
    {%- do parents.append(graph.nodes.get(id) or graph.sources.get(id) or {'name': id}) -%}
  {%- endfor -%}
  {%- set ephemeral = [] -%}
  {%- set relations = [] -%}

  {%- if not parents -%}
    {%- do problems.append("a release has a source, named with ref() or source(); this model names none") -%}
  {%- endif -%}
  {%- for parent in parents -%}
    {%- if parent.resource_type not in ['model', 'seed', 'snapshot', 'source'] -%}
      {%- do problems.append(parent.name ~ " is not a table or a view") -%}
    {%- elif parent.config.materialized == 'ephemeral' -%}
      {%- do ephemeral.append(parent.name) -%}
      {%- do problems.append(parent.name ~ " is ephemeral, so it is nowhere: make it a table or a view") -%}
    {%- elif parent.config.materialized == 'dp_release' -%}
      {%- do problems.append(
        parent.name ~ " is a release itself: nothing is gained by releasing it again; read it"
      ) -%}
    {%- elif parent.resource_type == 'source' -%}
      {%- do relations.append(builtins.source(parent.source_name, parent.name)) -%}
    {%- else -%}
      {%- do relations.append(builtins.ref(parent.package_name, parent.name, version=parent.version)) -%}
    {%- endif -%}
  {%- endfor -%}

  {%- if model.language == 'sql' and dpsyn_sql.without_comments(sql) != dpsyn_sql.released(this)
      and not ephemeral -%}
    {%- do problems.append(
      "the body must be {{ dpsyn_sql.release(ref('name')) }}, with each ref() or source() of a database, and "
      ~ "nothing else, because `dbt show` runs it"
    ) -%}
  {%- endif -%}
  {%- if existing is not none and existing.type == 'view' -%}
    {%- do problems.append(existing.identifier ~ " is a view now: drop it first") -%}
  {%- endif -%}
  {%- if (config.get('contract') or {}).enforced -%}
    {%- do problems.append("a contract is not enforced here: drop it, and add the test dpsyn_sql.within_domain") -%}
  {%- endif -%}
  {%- if config.get('indexes') -%}
    {%- do problems.append("indexes are not made here: drop them") -%}
  {%- endif -%}
  {%- for key in ['epsilon', 'delta', 'unit', 'most'] -%}
    {%- if key in model.config.meta or config.get(key) is not none -%}
      {%- do problems.append(key ~ " belongs under meta.dpsyn: meta={'dpsyn': {'" ~ key ~ "': ...}}") -%}
    {%- endif -%}
  {%- endfor -%}

  {%- if problems -%}
    {%- do exceptions.raise_compiler_error("dp_release: " ~ problems | join("; ") ~ ". Nothing was charged.") -%}
  {%- endif -%}
  {{ return(relations) }}
{% endmacro %}


{% macro without_comments(text) -%}
  {%- set lines = [] -%}
  {%- for line in text.splitlines() if line.strip() and not line.strip().startswith('--') -%}
    {%- do lines.append(line.strip()) -%}
  {%- endfor -%}
  {{ return(lines | join('\n')) }}
{%- endmacro %}


{#- What dbt runs. Everything given travels as JSON within a literal of Python, where quotes, braces and line
    breaks mean nothing. -#}
{% macro python_code(source_relations, unpaid) -%}
  {%- set sources = [] -%}
  {%- for relation in source_relations -%}
    {%- set external = relation.external -%}
    {%- if external and (external.count("'") != 2 or not external.startswith("'") or not external.endswith("'")) -%}
      {%- do exceptions.raise_compiler_error(
        "dp_release: the source is read by an expression: name a plain path in external_location, or make a table "
        ~ "of it. Nothing was charged."
      ) -%}
    {%- endif -%}
    {%- set names = [relation.database, relation.schema, relation.identifier] | select | list -%}
    {%- do sources.append({'names': names, 'path': external[1:-1] if external else none}) -%}
  {%- endfor -%}
  {%- set call = {
    'model': dpsyn_sql.default_name(model),
    'project': invocation_args_dict.project_dir,
    'target_path': flags.TARGET_PATH or 'target',
    'sources': sources,
    'into': [this.database, this.schema, this.identifier],
    'options': model.config.meta.get('dpsyn') or {},
    'empty': unpaid,
    'invocation': invocation_id
  } -%}
  {%- set missing = "the environment of dbt has no dpsyn_sql of this version: pip install dpsyn_sql. "
    ~ "Nothing was charged." -%}
{% if model.language == 'python' %}
{{ model.compiled_code }}

_options = model
{% else %}
def dbtObj(load):
    return None


def _options(dbt, session):
    return None

{% endif %}

def model(dbt, session):
    try:
        from dpsyn_sql.front.dbt import build
    except ImportError:
        session.execute({{ tojson("SET VARIABLE dpsyn_told = '" ~ tojson({'error': missing}) ~ "'") }})
    else:
        build(session, {{ tojson(tojson(call)) }}, _options(dbt, session))


def materialize(nothing, session):
    pass
{%- endmacro %}


{#- The outcome of the release; its error is the model's error, in one line. -#}
{% macro told() %}
  {%- set text = run_query("select getvariable('dpsyn_told') as told").columns[0].values()[0] -%}
  {%- set outcome = fromjson(text) -%}
  {%- for warning in outcome.warnings -%}
    {%- do exceptions.warn("dpsyn_sql: " ~ model.name ~ ": " ~ warning) -%}
  {%- endfor -%}
  {%- if outcome.get('error') -%}
    {%- do exceptions.raise_compiler_error("dp_release: " ~ outcome.error) -%}
  {%- endif -%}
  {%- for note in [outcome.get('told')] + outcome.notes if note -%}
    {%- do log("dpsyn_sql: " ~ note, info=True) -%}
  {%- endfor -%}
  {{ return(outcome) }}
{% endmacro %}
