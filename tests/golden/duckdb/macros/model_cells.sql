CREATE TABLE IF NOT EXISTS "d".dpsyn.model_cells (
    release INTEGER NOT NULL,
    number INTEGER NOT NULL,
    cell BIGINT NOT NULL,
    probability FLOAT NOT NULL
)
