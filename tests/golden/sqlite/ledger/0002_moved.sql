CREATE INDEX entry_settings ON entry (account_id, configuration_hash);

CREATE INDEX record_moved ON record (position) WHERE kind = 'moved';
