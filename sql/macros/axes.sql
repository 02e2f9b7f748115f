-- The axes of noisy answers (kind 'measurement', 'composed' of answers that other tables share, or 'fitted' to answers) and of the
-- model's tables (kind 'model'): place of a cell on the axis is (cell // stride) % size. An axis is in original codes, or in bins.
-- in:  schema
-- out: table
CREATE TABLE IF NOT EXISTS {{ schema }}.axes (
    release INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    number INTEGER NOT NULL,
    attribute INTEGER NOT NULL,
    size BIGINT NOT NULL,
    stride BIGINT NOT NULL,
    original BOOLEAN NOT NULL
)
