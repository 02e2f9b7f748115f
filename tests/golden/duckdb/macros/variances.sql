CREATE TABLE IF NOT EXISTS "d".dpsyn.variances (
    release INTEGER NOT NULL,
    marginal VARCHAR NOT NULL,
    dispersion DOUBLE NOT NULL,
    precision DOUBLE NOT NULL
)
