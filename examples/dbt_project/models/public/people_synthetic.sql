{{ config(
    materialized='dp_release',
    meta={'dpsyn': {'epsilon': 1.0, 'unit': 'row', 'domain': 'people.domain.yml'}}
) }}
{{ dpsyn_sql.release(ref('people')) }}
