SELECT *
FROM source
ORDER BY name
