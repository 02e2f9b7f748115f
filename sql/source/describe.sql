-- Column names and types of anything that can stand after FROM: it is bound, no row is read.
-- in:  relation (SQL to put after FROM)
-- out: column_name, column_type, null, key, default, extra
DESCRIBE SELECT *
FROM {{ relation }}
