-- The attributes of a release in the order of its columns.
-- in:  schema
-- out: table
CREATE TABLE IF NOT EXISTS {{ schema }}.attributes (
    release INTEGER NOT NULL,
    attribute INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    sql_type VARCHAR NOT NULL,
    size BIGINT NOT NULL,
    bins BIGINT NOT NULL
)
