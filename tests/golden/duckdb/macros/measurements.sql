CREATE TABLE IF NOT EXISTS "d".dpsyn.measurements (
    release INTEGER NOT NULL,
    measurement INTEGER NOT NULL,
    sigma DOUBLE NOT NULL,
    cells BIGINT NOT NULL
)
