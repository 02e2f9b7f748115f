-- The alias table of one node, to stand after FROM, as sample/entries: of values so wide that an entry is no word.
-- in:  slots (to stand after FROM: position, threshold, value, alias), type (of packed values), columns (names of
--      the lists of thresholds, own values and aliases)
-- out: a subquery of one row with these columns: lists by position
(
    SELECT
        list(CAST(threshold AS UINTEGER) ORDER BY position) AS {{ columns[0] }},
        list(CAST(value AS {{ type }}) ORDER BY position) AS {{ columns[1] }},
        list(CAST(alias AS {{ type }}) ORDER BY position) AS {{ columns[2] }}
    FROM {{ slots }}
)
