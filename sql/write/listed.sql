-- Numbers of staged rows.
-- in:  table
-- out: empty temporary table: of each row another one: that before it, or that it becomes like
CREATE TEMP TABLE {{ table }} (
    "row" BIGINT NOT NULL,
    donor BIGINT NOT NULL
)
