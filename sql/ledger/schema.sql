-- The ledger: accounts, releases, their events and noisy answers, and the chain.
-- in:  an empty SQLite file (SQLite dialect; every other statement in this folder too)
-- out: the tables, and triggers that refuse whatever would take back a debit
-- Amounts are integers: 1e-15 of mu^2/2 (kind 'gdp') or epsilon (kind 'pure'), 1e-18 of delta.

-- One record for each change of the tables below; hash = sha256(previous, position, kind, body).
CREATE TABLE record (
    position INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE
);

-- One for each privacy-unit namespace. No limit: limit_amount IS NULL. shown_delta: the delta at which people see
-- what is spent, that of its first grant or release.
CREATE TABLE account (
    account_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('pure', 'gdp')),
    shown_delta TEXT NOT NULL,
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

-- Which account a source was first charged to: it may never be charged to another.
CREATE TABLE source (
    name TEXT PRIMARY KEY NOT NULL,
    account_id INTEGER NOT NULL REFERENCES account (account_id)
);

-- A release: its debit stands from the moment the row exists.
CREATE TABLE entry (
    entry_id INTEGER PRIMARY KEY,
    release_id TEXT NOT NULL UNIQUE,
    account_id INTEGER NOT NULL REFERENCES account (account_id),
    name TEXT NOT NULL,
    version TEXT,
    configuration TEXT NOT NULL,
    configuration_hash TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('pure', 'gdp')),
    amount INTEGER NOT NULL CHECK (amount >= 0),
    delta INTEGER NOT NULL CHECK (delta >= 0),
    debited_at TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'debited' CHECK (state IN ('debited', 'measured', 'published')),
    measured_on TEXT
);

CREATE UNIQUE INDEX entry_key
ON entry (account_id, name, version IS NULL, ifnull(version, ''), configuration_hash);

CREATE INDEX entry_settings ON entry (account_id, configuration_hash);

CREATE INDEX record_moved ON record (position) WHERE kind = 'moved';

-- What was reserved before the source was read for question number sequence. Of a release that stopped, sequence -1 has its
-- mark (ordinal 0) and what it handed on to later releases.
CREATE TABLE event (
    entry_id INTEGER NOT NULL REFERENCES entry (entry_id),
    sequence INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    event TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (amount >= 0),
    delta INTEGER NOT NULL CHECK (delta >= 0),
    PRIMARY KEY (entry_id, sequence, ordinal)
);

-- The transcript. content: the noisy tables one after the other, int64, little-endian.
CREATE TABLE answer (
    entry_id INTEGER NOT NULL REFERENCES entry (entry_id),
    sequence INTEGER NOT NULL,
    question TEXT NOT NULL,
    shapes TEXT NOT NULL,
    digest TEXT NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (entry_id, sequence)
);

CREATE TABLE publication (
    entry_id INTEGER NOT NULL REFERENCES entry (entry_id),
    ordinal INTEGER NOT NULL,
    target TEXT NOT NULL,
    synthetic_rows INTEGER NOT NULL,
    PRIMARY KEY (entry_id, ordinal)
);

CREATE TRIGGER record_continues BEFORE INSERT ON record
WHEN NEW.position IS NOT (SELECT ifnull(max(position), 0) + 1 FROM record)
BEGIN SELECT RAISE(ABORT, 'a record continues the chain'); END;

CREATE TRIGGER record_stays BEFORE UPDATE ON record
BEGIN SELECT RAISE(ABORT, 'records never change'); END;
CREATE TRIGGER record_kept BEFORE DELETE ON record
BEGIN SELECT RAISE(ABORT, 'records are never deleted'); END;

CREATE TRIGGER account_new BEFORE INSERT ON account
WHEN NEW.spent_amount <> 0 OR NEW.spent_delta <> 0
    OR EXISTS (SELECT 1 FROM account WHERE account_id = NEW.account_id OR name = NEW.name)
BEGIN SELECT RAISE(ABORT, 'an account begins empty and once'); END;

-- A spent sum may only be restated when a pure account becomes an approximate one.
CREATE TRIGGER account_forward BEFORE UPDATE ON account
WHEN NEW.account_id <> OLD.account_id
    OR NEW.name <> OLD.name
    OR NEW.shown_delta <> OLD.shown_delta
    OR (OLD.unit IS NOT NULL AND NEW.unit IS NOT OLD.unit)
    OR (OLD.kind = 'gdp' AND NEW.kind <> 'gdp')
    OR (NEW.kind = OLD.kind AND OLD.limit_amount IS NOT NULL AND NEW.limit_amount IS NULL)
    OR (NEW.kind = OLD.kind AND NEW.spent_amount < OLD.spent_amount)
    OR NEW.spent_delta < OLD.spent_delta
BEGIN SELECT RAISE(ABORT, 'what is spent never falls'); END;
CREATE TRIGGER account_kept BEFORE DELETE ON account
BEGIN SELECT RAISE(ABORT, 'accounts are never deleted'); END;

CREATE TRIGGER source_stays BEFORE UPDATE ON source
BEGIN SELECT RAISE(ABORT, 'a source keeps its account'); END;
CREATE TRIGGER source_kept BEFORE DELETE ON source
BEGIN SELECT RAISE(ABORT, 'a source keeps its account'); END;

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

CREATE TRIGGER event_fits BEFORE INSERT ON event
WHEN NEW.amount + (SELECT ifnull(sum(amount), 0) FROM event WHERE entry_id = NEW.entry_id)
        > (SELECT amount FROM entry WHERE entry_id = NEW.entry_id)
    OR NEW.delta + (SELECT ifnull(sum(delta), 0) FROM event WHERE entry_id = NEW.entry_id)
        > (SELECT delta FROM entry WHERE entry_id = NEW.entry_id)
BEGIN SELECT RAISE(ABORT, 'events stay within the debit'); END;
CREATE TRIGGER event_stays BEFORE UPDATE ON event
BEGIN SELECT RAISE(ABORT, 'events never change'); END;
CREATE TRIGGER event_kept BEFORE DELETE ON event
BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;

CREATE TRIGGER answer_stays BEFORE UPDATE ON answer
BEGIN SELECT RAISE(ABORT, 'answers never change'); END;
CREATE TRIGGER answer_kept BEFORE DELETE ON answer
BEGIN SELECT RAISE(ABORT, 'answers are never deleted'); END;

CREATE TRIGGER publication_stays BEFORE UPDATE ON publication
BEGIN SELECT RAISE(ABORT, 'publications never change'); END;
CREATE TRIGGER publication_kept BEFORE DELETE ON publication
BEGIN SELECT RAISE(ABORT, 'publications are never deleted'); END;
