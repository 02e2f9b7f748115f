-- Statlog German Credit as an owner would declare it from the code book.
CREATE TABLE german_credit (
    "status" VARCHAR NOT NULL CHECK ("status" IN ('A11', 'A12', 'A13', 'A14')),
    "month" BIGINT NOT NULL CHECK ("month" > 0),
    credit_history VARCHAR NOT NULL,
    "purpose" VARCHAR NOT NULL,
    credit_amount BIGINT NOT NULL CHECK (credit_amount > 0),
    savings VARCHAR NOT NULL,
    employment VARCHAR NOT NULL,
    investment_as_income_percentage BIGINT NOT NULL CHECK (investment_as_income_percentage BETWEEN 1 AND 4),
    personal_status VARCHAR NOT NULL CHECK (personal_status IN ('A91', 'A92', 'A93', 'A94', 'A95')),
    other_debtors VARCHAR NOT NULL,
    residence_since BIGINT NOT NULL CHECK (residence_since BETWEEN 1 AND 4),
    "property" VARCHAR NOT NULL,
    age BIGINT NOT NULL CHECK (age >= 18),
    installment_plans VARCHAR NOT NULL,
    housing VARCHAR NOT NULL,
    number_of_credits BIGINT NOT NULL CHECK (number_of_credits BETWEEN 1 AND 4),
    skill_level VARCHAR NOT NULL,
    people_liable_for BIGINT NOT NULL CHECK (people_liable_for IN (1, 2)),
    telephone VARCHAR NOT NULL,
    foreign_worker VARCHAR NOT NULL,
    credit BIGINT NOT NULL CHECK (credit IN (1, 2))
);
