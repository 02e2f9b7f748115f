CREATE OR REPLACE MACRO "d".main.dpsyn_releases() AS TABLE
SELECT
    name,
    created,
    CAST(certificate ->> '$.guarantee.epsilon' AS DOUBLE) AS epsilon,
    CAST(certificate ->> '$.guarantee.delta' AS DOUBLE) AS delta,
    CAST(certificate ->> '$.sampling.rows' AS BIGINT) AS "rows",
    CAST(certificate ->> '$.sampling.seed' AS UBIGINT) AS seed,
    certificate ->> '$.method' AS method,
    release_id,
    certificate
FROM dpsyn.releases
ORDER BY
    created,
    name
