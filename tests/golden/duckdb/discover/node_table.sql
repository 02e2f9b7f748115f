CREATE TEMP TABLE temp.main.nodes (
    place BIGINT,
    shape INTEGER,
    n0 BIGINT,
    n1 VARCHAR
)
