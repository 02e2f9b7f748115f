CREATE TEMP TABLE staged (
    "row" BIGINT,
    a0 UTINYINT,
    a1 USMALLINT
)
