CREATE TABLE IF NOT EXISTS "d".dpsyn.attributes (
    release INTEGER NOT NULL,
    attribute INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    sql_type VARCHAR NOT NULL,
    size BIGINT NOT NULL,
    bins BIGINT NOT NULL
)
