-- Numbers of staged rows.
-- in:  table
-- out: empty temporary table: of each row the first of its unit, and the row that it becomes like
{{ dialect.create_temporary }} {{ table }} (
    "row" BIGINT NOT NULL,
    begin BIGINT NOT NULL,
    donor BIGINT NOT NULL
)
