-- Joint probabilities of the model over working bins; cells that are not here have probability 0.
-- in:  schema
-- out: table
CREATE TABLE IF NOT EXISTS {{ schema }}.model_cells (
    release INTEGER NOT NULL,
    number INTEGER NOT NULL,
    cell BIGINT NOT NULL,
    probability DOUBLE NOT NULL
)
