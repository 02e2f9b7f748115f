-- Rows of one release.
-- in:  macro (qualified name), rows, seed (names of the parameters), query
-- out: table macro of the number of rows and the seed
CREATE OR REPLACE MACRO {{ macro }}({{ rows }}, {{ seed }}) AS TABLE
{{ query }}
