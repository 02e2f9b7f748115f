CREATE SCHEMA IF NOT EXISTS "d".dpsyn;

CREATE TABLE IF NOT EXISTS "d".dpsyn.attributes (
    release INTEGER NOT NULL,
    attribute INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    sql_type VARCHAR NOT NULL,
    size BIGINT NOT NULL,
    bins BIGINT NOT NULL
);

CREATE TABLE IF NOT EXISTS "d".dpsyn.codes (
    release INTEGER NOT NULL,
    attribute INTEGER NOT NULL,
    code BIGINT NOT NULL,
    label VARCHAR NOT NULL,
    is_null BOOLEAN NOT NULL,
    bin BIGINT NOT NULL,
    within DOUBLE NOT NULL
);

CREATE TABLE IF NOT EXISTS "d".dpsyn.measurements (
    release INTEGER NOT NULL,
    measurement INTEGER NOT NULL,
    sigma DOUBLE NOT NULL,
    cells BIGINT NOT NULL
);

CREATE TABLE IF NOT EXISTS "d".dpsyn.axes (
    release INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    number INTEGER NOT NULL,
    attribute INTEGER NOT NULL,
    size BIGINT NOT NULL,
    stride BIGINT NOT NULL,
    original BOOLEAN NOT NULL
);

CREATE TABLE IF NOT EXISTS "d".dpsyn.measured_bins (
    release INTEGER NOT NULL,
    measurement INTEGER NOT NULL,
    attribute INTEGER NOT NULL,
    code BIGINT NOT NULL,
    bin BIGINT NOT NULL
);

CREATE TABLE IF NOT EXISTS "d".dpsyn.measured_cells (
    release INTEGER NOT NULL,
    measurement INTEGER NOT NULL,
    cell BIGINT NOT NULL,
    noisy BIGINT NOT NULL
);

CREATE TABLE IF NOT EXISTS "d".dpsyn.model_cells (
    release INTEGER NOT NULL,
    number INTEGER NOT NULL,
    cell BIGINT NOT NULL,
    probability FLOAT NOT NULL
);

CREATE TABLE IF NOT EXISTS "d".dpsyn.shares (
    release INTEGER NOT NULL,
    node INTEGER NOT NULL,
    parent BIGINT NOT NULL,
    value BIGINT NOT NULL,
    weight UINTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS "d".dpsyn.variables (
    release INTEGER NOT NULL,
    node INTEGER NOT NULL,
    place INTEGER NOT NULL,
    parent BOOLEAN NOT NULL,
    variable INTEGER NOT NULL,
    size BIGINT NOT NULL,
    attribute INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS "d".dpsyn.variances (
    release INTEGER NOT NULL,
    marginal VARCHAR NOT NULL,
    dispersion DOUBLE NOT NULL,
    precision DOUBLE NOT NULL
);

CREATE TABLE IF NOT EXISTS "d".dpsyn.releases (
    release INTEGER NOT NULL,
    format INTEGER NOT NULL,
    release_id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    created VARCHAR NOT NULL,
    total DOUBLE NOT NULL,
    certificate JSON NOT NULL
)
