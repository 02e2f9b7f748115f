-- Noisy answers: contingency tables with noise of standard deviation sigma in every cell.
-- in:  schema
-- out: table
CREATE TABLE IF NOT EXISTS {{ schema }}.measurements (
    release INTEGER NOT NULL,
    measurement INTEGER NOT NULL,
    sigma DOUBLE NOT NULL,
    cells BIGINT NOT NULL
)
