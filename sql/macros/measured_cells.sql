-- The cells of noisy answers, empty ones included.
-- in:  schema
-- out: table
CREATE TABLE IF NOT EXISTS {{ schema }}.measured_cells (
    release INTEGER NOT NULL,
    measurement INTEGER NOT NULL,
    cell BIGINT NOT NULL,
    noisy BIGINT NOT NULL
)
