-- A setting of the session.
-- in:  name (text literal)
-- out: one row: value
SELECT
    current_setting({{ name }}) AS value
