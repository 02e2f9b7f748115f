{#- Every value of a released table is in the public domain of its release. Reads the table and what the release
    left in its database (dpsyn.releases, dpsyn.codes), never the source. A failing row is a column and what is
    wrong with it. -#}
{% test within_domain(model, release=none) %}
{%- set home = '"' ~ (model.database | string | replace('"', '""')) ~ '".dpsyn' -%}
{%- if dpsyn_sql.is_unpaid() -%}
select 'no release with --empty or --sample' as problem where false
{%- else -%}
with found as (
    {{ dpsyn_sql.release_named(home, release or dpsyn_sql.release_of(model)) }}
),

columns as (
    select
        d.value ->> '$.name' as name,
        d.value ->> '$.kind' as kind,
        d.value ->> '$.type' as sql_type,
        coalesce(cast(d.value ->> '$.nullable' as boolean), true) as nullable,
        d.value ->> '$.edges[0]' as low,
        d.value ->> '$.edges[#-1]' as high,
        cast(null as varchar) as only_value
    from found, json_each(found.certificate, '$.public_facts.domain') as d
    where not list_contains({{ dpsyn_sql.hidden_names('found.certificate') }}, d.value ->> '$.name')
        -- of a public table the key stands in the column, not what is measured of it
        and not list_contains(
            from_json(found.certificate -> '$.public_facts.roles[*].name', '["VARCHAR"]'),
            d.value ->> '$.name'
        )
    union all
    select
        d.value ->> '$.name' as name,
        d.value ->> '$.role' as kind,
        d.value ->> '$.type' as sql_type,
        true as nullable,
        null as low,
        null as high,
        d.value ->> '$.value' as only_value
    from found, json_each(found.certificate, '$.public_facts.roles') as d
),

labels as (
    select
        a.name,
        c.label,
        try_cast(c.label as double) as number
    from found as f
    inner join {{ home }}.attributes as a on a.release = f.release
    inner join {{ home }}.codes as c on c.release = a.release and c.attribute = a.attribute
    where not c.is_null
),

cells as (
    select
        lower(name) as name,
        value,
        count(*) as number_of_rows
    from (select columns(*)::varchar from {{ model }})
    unpivot include nulls (value for name in (columns(*)))
    group by all
),

judged as (
    select
        c.name,
        c.number_of_rows,
        case
            when d.name is null then 'the release has no such column'
            when c.value is null and not d.nullable then 'NULL'
            when c.value is null or d.kind in ('unitid', 'derived') or d.kind like '%key' then null
            when d.kind = 'constant' and c.value is distinct from d.only_value
                and try_cast(c.value as double) is distinct from try_cast(d.only_value as double)
                then 'not the constant'
            when d.kind = 'categorical'
                and not exists (
                    select 1 from labels as l
                    where lower(l.name) = c.name
                        and (
                            l.label = c.value
                            or (d.sql_type <> 'VARCHAR' and l.number = try_cast(c.value as double))
                            or (d.sql_type = 'BOOLEAN' and lower(l.label) = c.value)
                        )
                )
                then 'a value that is no category'
            when d.kind = 'numeric' and (
                try_cast(c.value as double) < try_cast(d.low as double)
                or try_cast(c.value as double) > try_cast(d.high as double)
                or try_cast(c.value as double) is null
            )
                then 'a value out of bounds'
            when d.kind not in ('numeric', 'categorical', 'constant') and (
                try_cast(c.value as timestamp) < try_cast(d.low as timestamp)
                or try_cast(c.value as timestamp) > try_cast(d.high as timestamp)
            )
                then 'a value out of bounds'
        end as problem
    from cells as c
    left join columns as d on lower(d.name) = c.name
)

select name, problem, sum(number_of_rows) as number_of_rows
from judged
where problem is not null
group by name, problem
union all
select null, 'there is no release of this name in the database', null
where not exists (select 1 from found)
union all
select d.name, 'the column of the release is missing', null
from columns as d
where lower(d.name) not in (select lower(c.name) from cells as c)
    and exists (select 1 from cells)
{%- endif -%}
{% endtest %}
