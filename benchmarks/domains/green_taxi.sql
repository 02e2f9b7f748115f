-- New York's green taxi trips as an owner would declare it.
CREATE TABLE green_taxi (
    lpep_pickup_datetime TIMESTAMP NOT NULL,
    lpep_dropoff_datetime TIMESTAMP NOT NULL,
    trip_distance DOUBLE NOT NULL CHECK (trip_distance >= 0),
    "PULocationID" BIGINT NOT NULL CHECK ("PULocationID" BETWEEN 1 AND 265),
    "DOLocationID" BIGINT NOT NULL CHECK ("DOLocationID" BETWEEN 1 AND 265),
    CHECK (lpep_dropoff_datetime >= lpep_pickup_datetime)
);
