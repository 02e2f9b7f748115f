-- Numbers of staged rows.
-- in:  table
-- out: empty temporary table: of each row the first one before it that is looked at, and the row that it becomes like
{{ dialect.create_temporary }} {{ table }} (
    "row" BIGINT NOT NULL,
    begin BIGINT NOT NULL,
    donor BIGINT NOT NULL
)
