-- How many rows each of some Parquet files has, by what the files say at their end (private side).
-- in:  paths (text literals; wildcards in them escaped)
-- out: num_rows BIGINT, one row a file, in the order of the paths
{% for path in paths %}
SELECT
    {{ loop.index0 }} AS place,
    CAST(num_rows AS BIGINT) AS num_rows
FROM parquet_file_metadata({{ path }})
{% if not loop.last %}
UNION ALL
{% endif %}
{% endfor %}
ORDER BY place
