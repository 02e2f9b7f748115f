-- A comment on a table or a column, in place of an earlier one.
-- in:  what (TABLE or COLUMN), name (qualified), text (literal of one piece)
-- out: the comment
COMMENT ON {{ what }} {{ name }} IS {{ text }}
