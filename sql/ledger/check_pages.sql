-- Whether the pages and indexes of the file are sound.
-- in:  nothing
-- out: integrity_check: 'ok', or the first fault
PRAGMA integrity_check(1)
