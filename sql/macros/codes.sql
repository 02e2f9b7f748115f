-- The codes of attributes: label (empty and is_null for NULL), the working bin of the model that a code
-- belongs to, and its share of the bin.
-- in:  schema
-- out: table
CREATE TABLE IF NOT EXISTS {{ schema }}.codes (
    release INTEGER NOT NULL,
    attribute INTEGER NOT NULL,
    code BIGINT NOT NULL,
    label VARCHAR NOT NULL,
    is_null BOOLEAN NOT NULL,
    bin BIGINT NOT NULL,
    within DOUBLE NOT NULL
)
