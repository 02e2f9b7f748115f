CREATE TABLE IF NOT EXISTS "d".dpsyn.releases (
    release INTEGER NOT NULL,
    format INTEGER NOT NULL,
    release_id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    created VARCHAR NOT NULL,
    total DOUBLE NOT NULL,
    certificate JSON NOT NULL
)
