-- How many nodes the network of a release has.
-- in:  table (qualified name: of shares, or of what earlier formats had instead), release (number)
-- out: nodes (0 for a model that is no network, and for a release of another format)
SELECT
    count(DISTINCT node) AS nodes
FROM {{ table }}
WHERE release = {{ release }}
