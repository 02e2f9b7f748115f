-- Make a database the one in which names are looked up.
-- in:  name (identifier)
-- out: nothing
USE {{ name }}
