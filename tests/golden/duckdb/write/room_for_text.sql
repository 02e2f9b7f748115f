CREATE TEMP TABLE goods (
    dpsyn_row BIGINT,
    "a" VARCHAR
)
