-- A setting of an instance of our own (never of a caller's connection).
-- in:  name (identifier), value (literal)
-- out: nothing
SET {{ name }} = {{ value }}
