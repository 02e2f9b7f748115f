SELECT
    count("a") AS g0,
    count(TRY_CAST(trim("a") AS BIGINT)) FILTER (WHERE NOT regexp_matches("a", '[.eE]|^ *[-+]?0[0-9]')) AS i0,
    count(TRY_CAST(trim("a") AS DOUBLE)) FILTER (WHERE NOT regexp_matches("a", '^ *[-+]?0[0-9]')) AS n0,
    count(TRY_CAST(trim("a") AS DATE)) FILTER (WHERE NOT contains("a", ':')) AS d0,
    count(TRY_CAST(trim("a") AS TIMESTAMP)) AS t0,
    count("b") AS g1,
    count(TRY_CAST(trim("b") AS BIGINT)) FILTER (WHERE NOT regexp_matches("b", '[.eE]|^ *[-+]?0[0-9]')) AS i1,
    count(TRY_CAST(trim("b") AS DOUBLE)) FILTER (WHERE NOT regexp_matches("b", '^ *[-+]?0[0-9]')) AS n1,
    count(TRY_CAST(trim("b") AS DATE)) FILTER (WHERE NOT contains("b", ':')) AS d1,
    count(TRY_CAST(trim("b") AS TIMESTAMP)) AS t1
FROM src
