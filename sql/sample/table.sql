-- Table that receives the distributions of a network (public side), one row a slot.
-- in:  table
-- out: empty temporary table
CREATE TEMP TABLE {{ table }} (
    node INTEGER NOT NULL,
    parent BIGINT NOT NULL,
    slot INTEGER NOT NULL,
    value BIGINT NOT NULL,
    low UINTEGER NOT NULL,
    high UINTEGER NOT NULL,
    threshold UINTEGER NOT NULL,
    alias BIGINT NOT NULL
)
