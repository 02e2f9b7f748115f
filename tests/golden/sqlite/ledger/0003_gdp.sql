CREATE TEMP TABLE kept_account AS SELECT * FROM account;
DROP TABLE account;

CREATE TABLE account (
    account_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('pure', 'zcdp', 'gdp')),
    unit TEXT,
    granted_epsilon TEXT,
    granted_delta TEXT,
    limit_amount INTEGER,
    limit_delta INTEGER,
    spent_amount INTEGER NOT NULL DEFAULT 0 CHECK (spent_amount >= 0),
    spent_delta INTEGER NOT NULL DEFAULT 0 CHECK (spent_delta >= 0),
    CHECK ((limit_amount IS NULL) = (limit_delta IS NULL)),
    CHECK (limit_amount IS NULL OR spent_amount <= limit_amount),
    CHECK (limit_delta IS NULL OR spent_delta <= limit_delta)
);

INSERT INTO account SELECT * FROM kept_account;
DROP TABLE kept_account;

CREATE TEMP TABLE kept_entry AS SELECT * FROM entry;
DROP TABLE entry;

CREATE TABLE entry (
    entry_id INTEGER PRIMARY KEY,
    release_id TEXT NOT NULL UNIQUE,
    account_id INTEGER NOT NULL REFERENCES account (account_id),
    name TEXT NOT NULL,
    version TEXT,
    configuration TEXT NOT NULL,
    configuration_hash TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('pure', 'zcdp', 'gdp')),
    amount INTEGER NOT NULL CHECK (amount >= 0),
    delta INTEGER NOT NULL CHECK (delta >= 0),
    debited_at TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'debited' CHECK (state IN ('debited', 'measured', 'published')),
    measured_on TEXT
);

INSERT INTO entry SELECT * FROM kept_entry;
DROP TABLE kept_entry;

CREATE TABLE price (
    entry_id INTEGER PRIMARY KEY REFERENCES entry (entry_id),
    amount INTEGER NOT NULL CHECK (amount >= 0)
);

CREATE UNIQUE INDEX entry_key
ON entry (account_id, name, version IS NULL, ifnull(version, ''), configuration_hash);

CREATE INDEX entry_settings ON entry (account_id, configuration_hash);

CREATE INDEX record_repriced ON record (position) WHERE kind = 'repriced';

CREATE TRIGGER account_new BEFORE INSERT ON account
WHEN NEW.spent_amount <> 0 OR NEW.spent_delta <> 0
    OR EXISTS (SELECT 1 FROM account WHERE account_id = NEW.account_id OR name = NEW.name)
BEGIN SELECT RAISE(ABORT, 'an account begins empty and once'); END;

CREATE TRIGGER account_forward BEFORE UPDATE ON account
WHEN NEW.account_id <> OLD.account_id
    OR NEW.name <> OLD.name
    OR (OLD.unit IS NOT NULL AND NEW.unit IS NOT OLD.unit)
    OR (OLD.kind = 'zcdp' AND NEW.kind = 'pure')
    OR (OLD.kind = 'gdp' AND NEW.kind <> 'gdp')
    OR ((NEW.kind = OLD.kind OR OLD.kind <> 'pure') AND OLD.limit_amount IS NOT NULL AND NEW.limit_amount IS NULL)
    OR (NEW.kind = OLD.kind AND NEW.spent_amount < OLD.spent_amount)
    OR NEW.spent_delta < OLD.spent_delta
BEGIN SELECT RAISE(ABORT, 'what is spent never falls'); END;
CREATE TRIGGER account_kept BEFORE DELETE ON account
BEGIN SELECT RAISE(ABORT, 'accounts are never deleted'); END;

CREATE TRIGGER entry_new BEFORE INSERT ON entry
WHEN NEW.state <> 'debited'
    OR EXISTS (SELECT 1 FROM entry WHERE entry_id = NEW.entry_id OR release_id = NEW.release_id)
BEGIN SELECT RAISE(ABORT, 'a release begins as debited and once'); END;

CREATE TRIGGER entry_forward BEFORE UPDATE ON entry
WHEN NEW.entry_id <> OLD.entry_id
    OR NEW.release_id <> OLD.release_id
    OR NEW.account_id <> OLD.account_id
    OR NEW.name <> OLD.name
    OR NEW.version IS NOT OLD.version
    OR NEW.configuration <> OLD.configuration
    OR NEW.configuration_hash <> OLD.configuration_hash
    OR NEW.kind <> OLD.kind
    OR NEW.amount <> OLD.amount
    OR NEW.delta <> OLD.delta
    OR NEW.debited_at <> OLD.debited_at
    OR (OLD.measured_on IS NOT NULL AND NEW.measured_on IS NOT OLD.measured_on)
    OR NOT (
        (OLD.state = 'debited' AND NEW.state = 'measured')
        OR (OLD.state = 'measured' AND NEW.state = 'published')
    )
BEGIN SELECT RAISE(ABORT, 'a release only moves forward'); END;
CREATE TRIGGER entry_kept BEFORE DELETE ON entry
BEGIN SELECT RAISE(ABORT, 'a debit is never taken back'); END;

CREATE TRIGGER price_new BEFORE INSERT ON price
WHEN EXISTS (SELECT 1 FROM price WHERE entry_id = NEW.entry_id)
BEGIN SELECT RAISE(ABORT, 'a release is priced anew once'); END;
CREATE TRIGGER price_stays BEFORE UPDATE ON price
BEGIN SELECT RAISE(ABORT, 'prices never change'); END;
CREATE TRIGGER price_kept BEFORE DELETE ON price
BEGIN SELECT RAISE(ABORT, 'prices are never deleted'); END;
