CREATE TEMP TABLE staged (
    tally INTEGER,
    i0 BIGINT,
    i1 BIGINT,
    b0 BLOB,
    n BIGINT
)
