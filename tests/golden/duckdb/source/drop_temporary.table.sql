DROP TABLE IF EXISTS "temp"."main"."x"
