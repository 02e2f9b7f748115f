-- Conditional distributions that rows are drawn from: given the number of the parents' configuration the
-- variables of a node have the packed value for random numbers from low to high, both included, below 2^32.
-- in:  schema
-- out: table
CREATE TABLE IF NOT EXISTS {{ schema }}.distributions (
    release INTEGER NOT NULL,
    node INTEGER NOT NULL,
    parent BIGINT NOT NULL,
    value BIGINT NOT NULL,
    low UINTEGER NOT NULL,
    high UINTEGER NOT NULL
)
