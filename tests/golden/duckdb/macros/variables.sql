CREATE TABLE IF NOT EXISTS "d".dpsyn.variables (
    release INTEGER NOT NULL,
    node INTEGER NOT NULL,
    place INTEGER NOT NULL,
    parent BOOLEAN NOT NULL,
    variable INTEGER NOT NULL,
    size BIGINT NOT NULL,
    attribute INTEGER NOT NULL
)
