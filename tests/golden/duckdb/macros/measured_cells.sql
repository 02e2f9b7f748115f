CREATE TABLE IF NOT EXISTS "d".dpsyn.measured_cells (
    release INTEGER NOT NULL,
    measurement INTEGER NOT NULL,
    cell BIGINT NOT NULL,
    noisy BIGINT NOT NULL
)
