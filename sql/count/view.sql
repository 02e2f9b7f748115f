-- Rows under the name of a temporary table; what the name meant before is forgotten.
-- in:  view, relation (what stands after FROM)
-- out: a temporary view of the rows
CREATE OR REPLACE TEMP VIEW {{ view }} AS
SELECT *
FROM {{ relation }}
