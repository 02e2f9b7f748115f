-- The numbers of one chunk of rows, to stand after FROM.
-- in:  table (of numbers), start, rows
-- out: a subquery with the column range
(
    SELECT range + {{ start }} AS range
    FROM {{ table }}
    WHERE range < {{ rows }}
)
