CREATE TABLE IF NOT EXISTS "d".dpsyn.axes (
    release INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    number INTEGER NOT NULL,
    attribute INTEGER NOT NULL,
    size BIGINT NOT NULL,
    stride BIGINT NOT NULL,
    original BOOLEAN NOT NULL
)
