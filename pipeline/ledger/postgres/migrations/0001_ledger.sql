-- +goose Up

-- Everything lives in one schema, which the session's search_path names.

CREATE DOMAIN token AS bigint CHECK (VALUE BETWEEN 0 AND 9007199254740991);

-- Which ledger this is, and whose. One row.
CREATE TABLE lineage (
	single     boolean PRIMARY KEY DEFAULT true CHECK (single),
	ledger     text NOT NULL CHECK (ledger <> ''),
	cluster    text NOT NULL CHECK (cluster <> ''),
	generation bigint NOT NULL CHECK (generation >= 1),
	mark       token NOT NULL,
	state      text NOT NULL CHECK (state IN ('open', 'frozen')),
	reason     text NOT NULL DEFAULT '',
	made       timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Guard rows of runs. A row is made before the run's first write and never removed: it says who may write no more.
CREATE TABLE runs (
	run      text COLLATE "C" PRIMARY KEY CHECK (run <> ''),
	made     timestamptz NOT NULL DEFAULT clock_timestamp(),
	shut_out timestamptz
);

-- Guard rows of fences: the highest token that shut out.
CREATE TABLE fences (
	component text COLLATE "C" NOT NULL,
	node      text COLLATE "C" NOT NULL,
	run       text COLLATE "C" NOT NULL REFERENCES runs,
	token     token NOT NULL,
	changed   timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (component, node, run)
);

CREATE TABLE tasks (
	id           text COLLATE "C" PRIMARY KEY CHECK (id ~ '^[a-z0-9-]{1,32}$'),
	type         text NOT NULL,
	run_type     text NOT NULL,
	state        text NOT NULL CHECK (state IN ('planned', 'creating', 'applying processors', 'uploading', 'downloading',
		'applying deprocessors', 'restoring', 'deleting', 'completed', 'failed', 'interrupted', 'reverted', 'cancelled')),
	attempt      int NOT NULL CHECK (attempt >= 0),
	max_attempts int NOT NULL CHECK (max_attempts >= 1),
	database     text NOT NULL,
	backup       text COLLATE "C" NOT NULL,
	node         text NOT NULL,
	run          text COLLATE "C" REFERENCES runs,
	token        token NOT NULL,
	created      timestamptz NOT NULL,
	updated      timestamptz NOT NULL,
	finished     timestamptz,
	detail       json NOT NULL,
	revision     bigint NOT NULL DEFAULT 1,
	write        text NOT NULL,
	CHECK ((finished IS NOT NULL) = (state IN ('completed', 'failed', 'interrupted', 'reverted', 'cancelled'))),
	CHECK ((token = 0) = (run IS NULL))
);
CREATE INDEX tasks_newest ON tasks (created DESC, id DESC);
CREATE INDEX tasks_active ON tasks (created DESC, id DESC) WHERE finished IS NULL;
CREATE INDEX tasks_of_database ON tasks (database, created DESC, id DESC);
CREATE INDEX tasks_of_type ON tasks (type, created DESC, id DESC);

-- What states a task went through, under which token. The first row is the planning.
CREATE TABLE task_states (
	task    text COLLATE "C" NOT NULL REFERENCES tasks ON DELETE CASCADE,
	seq     bigint GENERATED ALWAYS AS IDENTITY,
	at      timestamptz NOT NULL DEFAULT clock_timestamp(),
	state   text NOT NULL,
	attempt int NOT NULL,
	token   token NOT NULL,
	node    text NOT NULL,
	write   text NOT NULL,
	PRIMARY KEY (task, seq)
);

CREATE TABLE cancels (
	task  text COLLATE "C" PRIMARY KEY REFERENCES tasks ON DELETE CASCADE,
	asker text NOT NULL CHECK (asker <> ''),
	asked timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE backups (
	id        text COLLATE "C" PRIMARY KEY CHECK (id ~ '^[a-z0-9-]{1,32}$'),
	database  text NOT NULL,
	state     text NOT NULL CHECK (state IN ('creating', 'completed', 'deleting', 'gone')),
	token     token NOT NULL,
	created   timestamptz NOT NULL,
	completed timestamptz,
	gone      timestamptz,
	detail    json NOT NULL,
	CHECK (state <> 'completed' OR completed IS NOT NULL),
	CHECK ((gone IS NOT NULL) = (state = 'gone'))
);
CREATE INDEX backups_newest ON backups (created DESC, id DESC);
CREATE INDEX backups_of_state ON backups (state, created DESC, id DESC);
CREATE INDEX backups_of_database ON backups (database, created DESC, id DESC);

CREATE TABLE copies (
	backup  text COLLATE "C" NOT NULL REFERENCES backups ON DELETE CASCADE,
	place   int NOT NULL,
	storage text NOT NULL,
	state   text NOT NULL,
	bytes   bigint NOT NULL CHECK (bytes >= 0),
	error   text NOT NULL,
	PRIMARY KEY (backup, place)
);
CREATE INDEX copies_in_storage ON copies (storage, backup);

-- What happened, in order of seq: read on from the last one seen.
CREATE TABLE events (
	seq     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at      timestamptz NOT NULL DEFAULT clock_timestamp(),
	kind    text NOT NULL CHECK (kind IN ('planned', 'taken', 'cancel', 'ended', 'shut out')),
	task    text COLLATE "C" REFERENCES tasks ON DELETE CASCADE,
	run     text NOT NULL DEFAULT '',
	token   token NOT NULL DEFAULT 0,
	success boolean,
	CHECK ((task IS NULL) = (kind = 'shut out')),
	CHECK ((success IS NOT NULL) = (kind = 'ended'))
);
CREATE INDEX events_of_task ON events (task, seq);

-- Failures that somebody has to revert: the watcher takes the oldest that nobody has handled.
CREATE TABLE task_errors (
	seq     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	task    text COLLATE "C" NOT NULL REFERENCES tasks ON DELETE CASCADE,
	token   token NOT NULL,
	problem text NOT NULL,
	noted   timestamptz NOT NULL DEFAULT clock_timestamp(),
	handled timestamptz,
	UNIQUE (task, token)
);
CREATE INDEX task_errors_open ON task_errors (seq) WHERE handled IS NULL;
