-- Is a declared constant a value of its column's type? No table is read.
-- in:  value (a literal), cast (the same in the column's type)
-- out: fits
SELECT
    {{ cast }} IS NOT DISTINCT FROM {{ value }} AS fits
