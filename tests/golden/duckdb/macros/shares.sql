CREATE TABLE IF NOT EXISTS "d".dpsyn.shares (
    release INTEGER NOT NULL,
    node INTEGER NOT NULL,
    parent BIGINT NOT NULL,
    value BIGINT NOT NULL,
    weight UINTEGER NOT NULL
)
