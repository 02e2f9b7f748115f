-- UCI Adult as an owner would declare it; an unknown answer is NULL.
CREATE TABLE adult_all (
    age INTEGER NOT NULL CHECK (age BETWEEN 17 AND 90),
    workclass VARCHAR,
    fnlwgt INTEGER NOT NULL CHECK (fnlwgt > 0),
    education VARCHAR NOT NULL,
    education_num INTEGER NOT NULL CHECK (education_num BETWEEN 1 AND 16),
    marital_status VARCHAR NOT NULL,
    occupation VARCHAR,
    relationship VARCHAR NOT NULL,
    race VARCHAR NOT NULL,
    sex VARCHAR NOT NULL CHECK (sex IN ('Female', 'Male')),
    capital_gain INTEGER NOT NULL CHECK (capital_gain >= 0),
    capital_loss INTEGER NOT NULL CHECK (capital_loss >= 0),
    hours_per_week INTEGER NOT NULL CHECK (hours_per_week BETWEEN 1 AND 99),
    native_country VARCHAR,
    income VARCHAR NOT NULL CHECK (income IN ('<=50K', '>50K')),
    "split" VARCHAR NOT NULL CHECK ("split" IN ('train', 'test'))
);
