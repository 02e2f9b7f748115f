-- Names given to children in the United States as an owner would declare it: a row is a name and a sex.
CREATE TABLE baby_names (
    "name" VARCHAR NOT NULL,
    sex VARCHAR NOT NULL CHECK (sex IN ('F', 'M')),
    births INTEGER NOT NULL CHECK (births >= 5)
);
