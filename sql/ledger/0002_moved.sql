-- Schema 2 of the ledger: records may say that it was moved, and releases are found by their settings.
-- in:  a ledger of schema 1
-- out: an index
CREATE INDEX entry_settings ON entry (account_id, configuration_hash);

CREATE INDEX record_moved ON record (position) WHERE kind = 'moved';
