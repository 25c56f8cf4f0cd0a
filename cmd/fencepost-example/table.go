package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// errShutOut: somebody has come after us, with a larger token.
var errShutOut = errors.New("the job is somebody else's by now")

// table is the table of jobs. Each row has the token of whoever touched it last, and a smaller one meets no row: that is all
// that a resource has to do to be safe from the dead.
type table struct{}

func (t table) create(ctx context.Context, jobs int) error {
	_, err := t.sql(ctx, `CREATE TABLE jobs (id text PRIMARY KEY, steps int NOT NULL, done int NOT NULL DEFAULT 0,
		node text, token bigint NOT NULL DEFAULT 0);
		INSERT INTO jobs (id, steps) SELECT 'job-' || n, 20 FROM generate_series(1, :jobs) n;`, "jobs", strconv.Itoa(jobs))
	return err
}

// open lists the jobs that are not done.
func (t table) open(ctx context.Context) ([]string, error) {
	out, err := t.sql(ctx, `SELECT id FROM jobs WHERE done < steps ORDER BY id;`)
	return strings.Fields(out), err
}

// take is the first write under a claim, and tells how many steps are left.
func (t table) take(ctx context.Context, id string, token uint64, node string) (left int, err error) {
	return t.write(ctx, `UPDATE jobs SET token = :token, node = :'node' WHERE id = :'id' AND token < :token
		RETURNING steps - done;`, "id", id, "token", strconv.FormatUint(token, 10), "node", node)
}

// step does one step; the work is in the same statement, so it is done once or not at all.
func (t table) step(ctx context.Context, id string, token uint64) (left int, err error) {
	return t.write(ctx, `UPDATE jobs SET done = done + 1 WHERE id = :'id' AND token = :token AND done < steps
		RETURNING steps - done;`, "id", id, "token", strconv.FormatUint(token, 10))
}

// shutOut has the table refuse every earlier token. A later one there is no error: that holder has shut out the same.
func (t table) shutOut(ctx context.Context, id string, token uint64) error {
	_, err := t.sql(ctx, `UPDATE jobs SET token = :token WHERE id = :'id' AND token < :token;`,
		"id", id, "token", strconv.FormatUint(token, 10))
	return err
}

// write runs a statement that meets one row, or none when we are shut out.
func (t table) write(ctx context.Context, text string, values ...string) (left int, err error) {
	out, err := t.sql(ctx, text, values...)
	if err != nil {
		return 0, err
	}
	if out == "" {
		return 0, errShutOut
	}
	return strconv.Atoi(out)
}

// sql has psql run a text with variables, which it quotes itself.
func (t table) sql(ctx context.Context, text string, variables ...string) (string, error) {
	args := []string{"-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"}
	for i := 0; i < len(variables); i += 2 {
		args = append(args, "-v", variables[i]+"="+variables[i+1])
	}
	cmd := exec.CommandContext(ctx, "psql", args...)
	var stderr strings.Builder
	cmd.Stdin, cmd.Stderr = strings.NewReader(text), &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("psql: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
