-- Gowalla check-ins in New York City as an owner would declare it: a row is a check-in of a member.
CREATE TABLE gowalla (
    user_id INTEGER NOT NULL,
    ts_utc TIMESTAMP NOT NULL,
    lat DOUBLE NOT NULL CHECK (lat BETWEEN -90 AND 90),
    lon DOUBLE NOT NULL CHECK (lon BETWEEN -180 AND 180),
    venue_id INTEGER NOT NULL CHECK (venue_id > 0)
);
