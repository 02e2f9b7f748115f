-- The same distributions as alias tables: value below cut (units of 2^-32), else alias.
-- in:  schema
-- out: table
CREATE TABLE IF NOT EXISTS {{ schema }}.aliases (
    release INTEGER NOT NULL,
    node INTEGER NOT NULL,
    parent BIGINT NOT NULL,
    slot BIGINT NOT NULL,
    cut BIGINT NOT NULL,
    value BIGINT NOT NULL,
    alias BIGINT NOT NULL
)
