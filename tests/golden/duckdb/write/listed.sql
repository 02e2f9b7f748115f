CREATE TEMP TABLE listed (
    "row" BIGINT NOT NULL,
    donor BIGINT NOT NULL
)
