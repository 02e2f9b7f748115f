-- The schema of what is kept of releases; all of it is public.
-- in:  database
-- out: schema dpsyn in it
CREATE SCHEMA IF NOT EXISTS {{ database }}.dpsyn
