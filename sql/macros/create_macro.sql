-- Rows of one release.
-- in:  macro (qualified name), query
-- out: table macro of the number of rows and the seed
CREATE OR REPLACE MACRO {{ macro }}(dpsyn_rows, dpsyn_seed) AS TABLE
{{ query }}
