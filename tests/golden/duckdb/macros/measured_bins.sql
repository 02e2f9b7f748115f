CREATE TABLE IF NOT EXISTS "d".dpsyn.measured_bins (
    release INTEGER NOT NULL,
    measurement INTEGER NOT NULL,
    attribute INTEGER NOT NULL,
    code BIGINT NOT NULL,
    bin BIGINT NOT NULL
)
