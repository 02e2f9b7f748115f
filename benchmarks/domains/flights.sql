-- nycflights13 flights as an owner would declare it; a cancelled flight has no times.
CREATE TABLE flights (
    "year" INTEGER NOT NULL,
    "month" INTEGER NOT NULL CHECK ("month" BETWEEN 1 AND 12),
    "day" INTEGER NOT NULL CHECK ("day" BETWEEN 1 AND 31),
    dep_time BIGINT CHECK (dep_time % 100 < 60),
    dep_delay INTEGER,
    arr_time BIGINT CHECK (arr_time % 100 < 60),
    arr_delay INTEGER,
    carrier VARCHAR NOT NULL,
    tailnum VARCHAR NOT NULL,
    flight INTEGER NOT NULL,
    origin VARCHAR NOT NULL CHECK (origin IN ('EWR', 'JFK', 'LGA')),
    dest VARCHAR NOT NULL,
    air_time INTEGER CHECK (air_time > 0),
    distance INTEGER NOT NULL CHECK (distance > 0),
    "hour" INTEGER CHECK ("hour" BETWEEN 0 AND 24),
    "minute" INTEGER CHECK ("minute" BETWEEN 0 AND 59)
);
