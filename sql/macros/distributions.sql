-- Conditional distributions that rows are drawn from. Given the number of the parents' configuration the
-- variables of a node have the packed value for random numbers from low to high, both included, below 2^32; and
-- in an alias table of 2^b equal slots for numbers of a slot that are below the threshold, else the alias. A slot
-- that has no value of its own has -1, and low above high.
-- in:  schema
-- out: table
CREATE TABLE IF NOT EXISTS {{ schema }}.distributions (
    release INTEGER NOT NULL,
    node INTEGER NOT NULL,
    parent BIGINT NOT NULL,
    slot INTEGER NOT NULL,
    value BIGINT NOT NULL,
    low UINTEGER NOT NULL,
    high UINTEGER NOT NULL,
    threshold UINTEGER NOT NULL,
    alias BIGINT NOT NULL
)
