CREATE TEMP TABLE listed (
    "row" BIGINT NOT NULL,
    begin BIGINT NOT NULL,
    donor BIGINT NOT NULL
)
