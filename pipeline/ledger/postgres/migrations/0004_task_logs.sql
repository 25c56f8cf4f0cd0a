-- +goose Up

-- What there is to tell of a task: the newest lines, as the rules of package ledger keep them.
CREATE TABLE task_logs (
	task text COLLATE "C" PRIMARY KEY REFERENCES tasks ON DELETE CASCADE,
	kept json NOT NULL
);
