{#- The table is the output of a release that is stored in its database, with an epsilon up to max_epsilon and, if
    given, a delta up to max_delta: it has the columns and the number of rows that the certificate states. -#}
{% test is_release(model, max_epsilon, max_delta=none, release=none) %}
{%- set home = '"' ~ (model.database | string | replace('"', '""')) ~ '".dpsyn' -%}
{%- if dpsyn_sql.is_unpaid() -%}
select 'no release with --empty or --sample' as problem where false
{%- else -%}
with found as (
    {{ dpsyn_sql.release_named(home, release or dpsyn_sql.release_of(model)) }}
),

facts as (
    select
        cast(certificate ->> '$.guarantee.epsilon' as double) as epsilon,
        cast(certificate ->> '$.guarantee.delta' as double) as delta,
        cast(certificate ->> '$.sampling.rows' as bigint) as number_of_rows,
        list_sort(list_distinct(list_transform(
            list_filter(
                from_json(certificate -> '$.public_facts.domain[*].name', '["VARCHAR"]'),
                lambda name: not list_contains({{ dpsyn_sql.hidden_names('certificate') }}, name)
            )
            || from_json(certificate -> '$.public_facts.roles[*].name', '["VARCHAR"]'),
            lambda name: lower(name)
        ))) as names
    from found
),

table_columns as (
    select list_sort(list(lower(column_name))) as names
    from duckdb_columns()
    where lower(database_name) = lower({{ dpsyn_sql.text(model.database) }})
        and lower(schema_name) = lower({{ dpsyn_sql.text(model.schema) }})
        and lower(table_name) = lower({{ dpsyn_sql.text(model.identifier) }})
)

select 'there is no release of this name in the database' as problem where not exists (select 1 from found)
union all
select 'epsilon ' || epsilon || ' is above the limit' from facts
where not coalesce(epsilon <= {{ dpsyn_sql.limit('max_epsilon', max_epsilon) }}, false)
{% if max_delta is not none -%}
union all
select 'delta ' || delta || ' is above the limit' from facts
where not coalesce(delta <= {{ dpsyn_sql.limit('max_delta', max_delta) }}, false)
{% endif -%}
union all
select 'the table has other columns than the release' from facts
where names is distinct from (select names from table_columns)
union all
select 'the table has another number of rows than the release' from facts
where number_of_rows is distinct from (select count(*) from {{ model }})
{%- endif -%}
{% endtest %}
