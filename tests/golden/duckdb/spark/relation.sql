CREATE TABLE src (
    "a""" INTEGER,
    b VARCHAR
)
