-- The schema of what is kept of releases, and its tables; all of it is public. A release that is written later finds them there.
-- in:  database
-- out: schema dpsyn in it, with eleven tables
CREATE SCHEMA IF NOT EXISTS {{ database }}.dpsyn;

-- The attributes of a release in the order of its columns.
CREATE TABLE IF NOT EXISTS {{ database }}.dpsyn.attributes (
    release INTEGER NOT NULL,
    attribute INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    sql_type VARCHAR NOT NULL,
    size BIGINT NOT NULL,
    bins BIGINT NOT NULL
);

-- The codes of attributes: label (empty and is_null for NULL), the working bin of the model that a code
-- belongs to, and its share of the bin.
CREATE TABLE IF NOT EXISTS {{ database }}.dpsyn.codes (
    release INTEGER NOT NULL,
    attribute INTEGER NOT NULL,
    code BIGINT NOT NULL,
    label VARCHAR NOT NULL,
    is_null BOOLEAN NOT NULL,
    bin BIGINT NOT NULL,
    within DOUBLE NOT NULL
);

-- Noisy answers: contingency tables with noise of standard deviation sigma in every cell.
CREATE TABLE IF NOT EXISTS {{ database }}.dpsyn.measurements (
    release INTEGER NOT NULL,
    measurement INTEGER NOT NULL,
    sigma DOUBLE NOT NULL,
    cells BIGINT NOT NULL
);

-- The axes of noisy answers (kind 'measurement', 'composed' of answers that other tables share, or 'fitted' to answers) and of the
-- model's tables (kind 'model'): place of a cell on the axis is (cell // stride) % size. An axis is in original codes, or in bins.
CREATE TABLE IF NOT EXISTS {{ database }}.dpsyn.axes (
    release INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    number INTEGER NOT NULL,
    attribute INTEGER NOT NULL,
    size BIGINT NOT NULL,
    stride BIGINT NOT NULL,
    original BOOLEAN NOT NULL
);

-- Of axes of noisy answers that are in bins, the bin of each code.
CREATE TABLE IF NOT EXISTS {{ database }}.dpsyn.measured_bins (
    release INTEGER NOT NULL,
    measurement INTEGER NOT NULL,
    attribute INTEGER NOT NULL,
    code BIGINT NOT NULL,
    bin BIGINT NOT NULL
);

-- The cells of noisy answers, empty ones included.
CREATE TABLE IF NOT EXISTS {{ database }}.dpsyn.measured_cells (
    release INTEGER NOT NULL,
    measurement INTEGER NOT NULL,
    cell BIGINT NOT NULL,
    noisy BIGINT NOT NULL
);

-- Joint probabilities of the model over working bins; cells that are not here have probability 0. Seven digits
-- are more than noise leaves of any.
CREATE TABLE IF NOT EXISTS {{ database }}.dpsyn.model_cells (
    release INTEGER NOT NULL,
    number INTEGER NOT NULL,
    cell BIGINT NOT NULL,
    probability FLOAT NOT NULL
);

-- Conditional distributions that rows are drawn from. Given the number of the parents' configuration, the
-- variables of a node have the values of a number (row-major) as often as its weight says beside the other
-- weights of the configuration. Stretches and alias tables follow from it.
CREATE TABLE IF NOT EXISTS {{ database }}.dpsyn.shares (
    release INTEGER NOT NULL,
    node INTEGER NOT NULL,
    parent BIGINT NOT NULL,
    value BIGINT NOT NULL,
    weight UINTEGER NOT NULL
);

-- What the numbers in shares mean: the parents and then the variables of each node of a network, in order. The
-- number of a configuration is row-major over their sizes. A variable that is the codes of an attribute says
-- which; any other one (a working bin, a coarse twin) has -1.
CREATE TABLE IF NOT EXISTS {{ database }}.dpsyn.variables (
    release INTEGER NOT NULL,
    node INTEGER NOT NULL,
    place INTEGER NOT NULL,
    parent BOOLEAN NOT NULL,
    variable INTEGER NOT NULL,
    size BIGINT NOT NULL,
    attribute INTEGER NOT NULL
);

-- What is known of the errors of the model's estimates: how far the counts of a pair are from the model beyond
-- sampling (dispersion), and the precision with which a cell was measured (1 / its variance in rows; 0 if it was not).
-- A marginal is named by the numbers of its attributes, ascending, with commas: '0,3'. Nothing is known of others.
CREATE TABLE IF NOT EXISTS {{ database }}.dpsyn.variances (
    release INTEGER NOT NULL,
    marginal VARCHAR NOT NULL,
    dispersion DOUBLE NOT NULL,
    precision DOUBLE NOT NULL
);

-- One row a release; its number stands for it in all other tables.
CREATE TABLE IF NOT EXISTS {{ database }}.dpsyn.releases (
    release INTEGER NOT NULL,
    format INTEGER NOT NULL,
    release_id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    created VARCHAR NOT NULL,
    total DOUBLE NOT NULL,
    certificate JSON NOT NULL
)
