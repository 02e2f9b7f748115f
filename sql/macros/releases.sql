-- One row a release; its number stands for it in all other tables.
-- in:  schema
-- out: table
CREATE TABLE IF NOT EXISTS {{ schema }}.releases (
    release INTEGER NOT NULL,
    format INTEGER NOT NULL,
    release_id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    created VARCHAR NOT NULL,
    total DOUBLE NOT NULL,
    certificate JSON NOT NULL
)
