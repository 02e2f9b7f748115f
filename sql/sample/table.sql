-- Table that receives the distributions of a network (public side), as dpsyn.shares without the release.
-- in:  table
-- out: empty temporary table
CREATE TEMP TABLE {{ table }} (
    node INTEGER NOT NULL,
    parent BIGINT NOT NULL,
    value BIGINT NOT NULL,
    weight UINTEGER NOT NULL
)
