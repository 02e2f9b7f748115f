SELECT
    settings.name,
    settings.value
FROM duckdb_settings() AS settings
LEFT JOIN (
    VALUES
        ('Calendar', 'gregorian'),
        ('default_collation', ''),
        ('default_null_order', 'NULLS_LAST'),
        ('default_order', 'ASCENDING'),
        ('disable_timestamptz_casts', 'false'),
        ('error_on_division_by_zero', 'true'),
        ('ieee_floating_point_ops', 'true'),
        ('integer_division', 'false'),
        ('old_implicit_casting', 'false')
) AS usual(name, value)
    ON settings.name = usual.name
WHERE settings.name = 'TimeZone'
    OR lower(settings.value) <> lower(usual.value)
ORDER BY
    settings.name
