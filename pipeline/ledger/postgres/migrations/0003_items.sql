-- +goose Up

-- Items of autonomous components. kept is the item as the rules of package component see it; the tables beside it hold
-- what is asked for.
CREATE TABLE items (
	id         text COLLATE "C" PRIMARY KEY CHECK (id <> ''),
	type       text COLLATE "C" NOT NULL,
	changed_at timestamptz NOT NULL,
	round_trip int NOT NULL,
	kept       json NOT NULL,
	revision   bigint NOT NULL DEFAULT 1
);
CREATE INDEX items_of_type ON items (type, id);

-- The newest event of each type of an item: the one that counts.
CREATE TABLE item_events (
	item    text COLLATE "C" NOT NULL REFERENCES items ON DELETE CASCADE,
	type    text COLLATE "C" NOT NULL,
	start   timestamptz NOT NULL,
	success boolean NOT NULL,
	PRIMARY KEY (item, type)
);

-- What each component has noted of an item.
CREATE TABLE item_records (
	item         text COLLATE "C" NOT NULL REFERENCES items ON DELETE CASCADE,
	component    text COLLATE "C" NOT NULL,
	created      timestamptz,
	last_attempt timestamptz,
	not_before   timestamptz,
	quarantined  boolean NOT NULL,
	PRIMARY KEY (item, component)
);
