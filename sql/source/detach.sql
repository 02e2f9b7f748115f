-- Let an attached file go (it must not be the current database).
-- in:  name (identifier)
-- out: nothing
DETACH {{ name }}
