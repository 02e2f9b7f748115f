DROP VIEW IF EXISTS "temp"."main"."x"
