-- Conditional distributions that rows are drawn from: of one parent the value from low up to the next low, in
-- units of 2^-32.
-- in:  schema
-- out: table
CREATE TABLE IF NOT EXISTS {{ schema }}.cumulative (
    release INTEGER NOT NULL,
    node INTEGER NOT NULL,
    parent BIGINT NOT NULL,
    value BIGINT NOT NULL,
    low BIGINT NOT NULL
)
