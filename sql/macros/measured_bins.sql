-- Of axes of noisy answers that are in bins, the bin of each code.
-- in:  schema
-- out: table
CREATE TABLE IF NOT EXISTS {{ schema }}.measured_bins (
    release INTEGER NOT NULL,
    measurement INTEGER NOT NULL,
    attribute INTEGER NOT NULL,
    code BIGINT NOT NULL,
    bin BIGINT NOT NULL
)
