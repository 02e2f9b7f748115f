-- Everything is in the file of an attached database, nothing beside it.
-- in:  name (identifier)
-- out: the file is complete
CHECKPOINT {{ name }}
