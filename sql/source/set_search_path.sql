-- Give a cursor the search path of the connection it comes from (a setting of this cursor only).
-- in:  search_path (text literal)
-- out: nothing
SET search_path = {{ search_path }}
