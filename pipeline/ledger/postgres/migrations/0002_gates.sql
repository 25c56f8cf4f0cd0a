-- +goose Up

-- Beginnings of tasks that depend on what else goes on with a database lock its row here: they come one after the other.
CREATE TABLE gates (
	database text COLLATE "C" PRIMARY KEY
);
