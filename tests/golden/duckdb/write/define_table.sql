CREATE TABLE "d"."t" (
    "a" INTEGER,
    PRIMARY KEY ("a")
)
