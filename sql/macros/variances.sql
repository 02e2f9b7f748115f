-- What is known of the errors of the model's estimates: how far the counts of a pair are from the model beyond
-- sampling (dispersion), and the precision with which a cell was measured (1 / its variance in rows; 0 if it was not).
-- A marginal is named by the numbers of its attributes, ascending, with commas: '0,3'. Nothing is known of others.
-- in:  schema
-- out: table
CREATE TABLE IF NOT EXISTS {{ schema }}.variances (
    release INTEGER NOT NULL,
    marginal VARCHAR NOT NULL,
    dispersion DOUBLE NOT NULL,
    precision DOUBLE NOT NULL
)
