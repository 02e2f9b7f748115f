-- What the numbers in shares mean: the parents and then the variables of each node of a network, in order. The
-- number of a configuration is row-major over their sizes. A variable that is the codes of an attribute says
-- which; any other one (a working bin, a coarse twin) has -1.
-- in:  schema
-- out: table
CREATE TABLE IF NOT EXISTS {{ schema }}.variables (
    release INTEGER NOT NULL,
    node INTEGER NOT NULL,
    place INTEGER NOT NULL,
    parent BOOLEAN NOT NULL,
    variable INTEGER NOT NULL,
    size BIGINT NOT NULL,
    attribute INTEGER NOT NULL
)
