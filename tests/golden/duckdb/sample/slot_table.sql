CREATE TEMP TABLE slots (
    node INTEGER NOT NULL,
    position BIGINT NOT NULL,
    threshold BIGINT NOT NULL,
    value BIGINT,
    alias BIGINT
)
