-- Joint probabilities of the model over working bins; cells that are not here have probability 0. Seven digits
-- are more than noise leaves of any.
-- in:  schema
-- out: table
CREATE TABLE IF NOT EXISTS {{ schema }}.model_cells (
    release INTEGER NOT NULL,
    number INTEGER NOT NULL,
    cell BIGINT NOT NULL,
    probability FLOAT NOT NULL
)
