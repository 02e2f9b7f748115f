-- Conditional distributions that rows are drawn from. Given the number of the parents' configuration, the
-- variables of a node have the values of a number (row-major) as often as its weight says beside the other
-- weights of the configuration. Stretches and alias tables follow from it.
-- in:  schema
-- out: table
CREATE TABLE IF NOT EXISTS {{ schema }}.shares (
    release INTEGER NOT NULL,
    node INTEGER NOT NULL,
    parent BIGINT NOT NULL,
    value BIGINT NOT NULL,
    weight UINTEGER NOT NULL
)
