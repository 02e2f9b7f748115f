-- Conditional distributions that rows are drawn from: value for low <= u < high, in units of 2^-32.
-- in:  schema
-- out: table
CREATE TABLE IF NOT EXISTS {{ schema }}.cumulative (
    release_id VARCHAR NOT NULL,
    node INTEGER NOT NULL,
    parent BIGINT NOT NULL,
    value BIGINT NOT NULL,
    low BIGINT NOT NULL,
    high BIGINT NOT NULL
)
