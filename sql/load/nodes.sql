-- How many nodes the network of a release has.
-- in:  schema, release (number)
-- out: nodes (0 for a model that is no network)
SELECT
    count(DISTINCT node) AS nodes
FROM {{ schema }}.shares
WHERE release = {{ release }}
