-- Table that receives the alias tables of a network (public side), one row a slot.
-- in:  table
-- out: empty temporary table
CREATE TEMP TABLE {{ table }} (
    node INTEGER NOT NULL,
    position BIGINT NOT NULL,
    threshold BIGINT NOT NULL,
    value BIGINT,
    alias BIGINT
)
