CREATE TABLE IF NOT EXISTS "d".dpsyn.codes (
    release INTEGER NOT NULL,
    attribute INTEGER NOT NULL,
    code BIGINT NOT NULL,
    label VARCHAR NOT NULL,
    is_null BOOLEAN NOT NULL,
    bin BIGINT NOT NULL,
    within DOUBLE NOT NULL
)
