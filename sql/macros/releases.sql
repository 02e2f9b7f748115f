-- One row a release.
-- in:  schema
-- out: table
CREATE TABLE IF NOT EXISTS {{ schema }}.releases (
    release_id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    created VARCHAR NOT NULL,
    total DOUBLE NOT NULL,
    certificate JSON NOT NULL
)
