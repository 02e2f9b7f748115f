-- How many nodes the network of a release has.
-- in:  table (qualified name of shares), release (number)
-- out: nodes (0 for a model that is no network)
SELECT
    count(DISTINCT node) AS nodes
FROM {{ table }}
WHERE release = {{ release }}
