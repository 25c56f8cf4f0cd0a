package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline/pgtest"
)

// check looks at everything that must hold after the recovery, and goes on after the first thing that does not.
func (d *demo) check(ctx context.Context, o outcome) error {
	var errs []error
	for _, look := range []func(context.Context, outcome) error{
		d.checkLedger, d.checkStorages, d.checkRestore, d.checkFences, d.checkDatabases, d.checkChildren,
	} {
		if err := look(ctx, o); err != nil {
			errs = append(errs, err)
		}
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
	}
	return errors.Join(errs...)
}

// checkLedger: one backup, completed by the second attempt, on each node's word.
func (d *demo) checkLedger(ctx context.Context, o outcome) error {
	if o.task.Attempt != o.kill.attempt+1 || o.task.Token <= o.kill.token {
		return fmt.Errorf("the backup was completed by attempt %d with token %d; the killed one was attempt %d with token %d",
			o.task.Attempt, o.task.Token, o.kill.attempt, o.kill.token)
	}
	for _, n := range d.nodes {
		all, err := n.client.Backups(ctx, api.BackupFilter{})
		if err != nil {
			return fmt.Errorf("ask %s for the backups: %w", n.name, err)
		}
		if len(all) != 1 || all[0].ID != o.task.Backup || all[0].State != api.Completed || all[0].Token != o.task.Token {
			return fmt.Errorf("the ledger has, by %s, the backups %+v; want one, completed, with token %d", n.name, all, o.task.Token)
		}
		if all[0].RawBytes < d.size.least {
			return fmt.Errorf("the backup has %s; want at least %s", megabytes(all[0].RawBytes), megabytes(d.size.least))
		}
	}
	b, err := d.nodes[0].client.Backup(ctx, o.task.Backup)
	if err != nil {
		return fmt.Errorf("ask for the backup: %w", err)
	}
	d.out.ok("one completed backup in the ledger: %s of %s, by attempt %d on %s, %s, stored as %s",
		b.ID, b.Database, o.task.Attempt, o.task.Node, megabytes(b.RawBytes), megabytes(b.StoredBytes))
	return nil
}

// checkStorages: one valid manifest in each, a tombstone of the killed attempt, and nothing else.
func (d *demo) checkStorages(_ context.Context, o outcome) error {
	for _, s := range d.storages {
		c, err := look(s)
		if err != nil {
			return err
		}
		if len(c.problems) > 0 {
			return fmt.Errorf("storage %s: %s", s.name, strings.Join(c.problems, "; "))
		}
		if len(c.valid) != 1 || c.valid[0].Backup != o.task.Backup || c.valid[0].Token != o.task.Token {
			return fmt.Errorf("storage %s has %d valid manifests %+v; want one, of %s with token %d", s.name, len(c.valid), c.valid, o.task.Backup, o.task.Token)
		}
		if len(c.void) != 1 || c.void[0].Token != o.kill.token {
			return fmt.Errorf("storage %s has %d tombstones; want one, of token %d", s.name, len(c.void), o.kill.token)
		}
		d.out.ok("one valid manifest in storage %s, its objects whole by their SHA-256; one tombstone, no partial object", s.name)
	}
	return nil
}

// checkRestore restores into a new database and compares it with the original.
func (d *demo) checkRestore(ctx context.Context, o outcome) error {
	began := time.Now()
	client := d.node(o.kill.node).client // the node that died has its part again
	task, err := client.Restore(ctx, api.RestoreBackup{Backup: o.task.Backup, Target: restored})
	if err != nil {
		return fmt.Errorf("plan a restore: %w", err)
	}
	if task, err = client.WaitTask(ctx, task.ID, nil); err != nil {
		return fmt.Errorf("wait for the restore: %w", err)
	}
	if err := api.TaskError(task); err != nil {
		return err
	}
	took := time.Since(began)
	want, err := pgtest.Fingerprint(ctx, d.server.DSN(database))
	if err != nil {
		return err
	}
	got, err := pgtest.Fingerprint(ctx, d.server.DSN(restored))
	if err != nil {
		return err
	}
	if diff := pgtest.Diff(want, got); len(diff) > 0 {
		return fmt.Errorf("the restored database differs:\n  %s", strings.Join(diff, "\n  "))
	}
	var rows int64
	for _, t := range want.Tables {
		rows += t.Rows
	}
	d.out.ok("restored into a new database by %s in %.1f s, equal to the original: %d tables, %s rows, %d large objects, by count and checksum",
		task.Node, took.Seconds(), len(want.Tables), thousands(rows), len(want.Objects))
	return nil
}

// checkFences: no recovery is open; the killed run has had one for each component, by one recoverer, released.
func (d *demo) checkFences(ctx context.Context, o outcome) error {
	for _, n := range d.nodes {
		fences, err := n.client.Fences(ctx)
		if err != nil {
			return fmt.Errorf("ask %s for fences: %w", n.name, err)
		}
		recoveries, err := n.client.Recoveries(ctx)
		if err != nil {
			return fmt.Errorf("ask %s for recoveries: %w", n.name, err)
		}
		released := 0
		for _, r := range recoveries {
			if r.Run == o.kill.run && r.Component == component && r.State == "released" {
				released++
			}
		}
		if len(fences) > 0 || released != 1 {
			return fmt.Errorf("by %s there are the fences %+v, and %d released recoveries of %s; want none, and one", n.name, fences, released, o.kill.node)
		}
	}
	d.out.ok("one recovery of %s's backups, released; no fence is up", o.kill.node)
	return nil
}

// checkDatabases: the original and the copy, and none that a restore made on the way.
func (d *demo) checkDatabases(ctx context.Context, _ outcome) error {
	have, err := d.server.Databases(ctx)
	if err != nil {
		return err
	}
	if want := []string{"postgres", database, restored}; !slices.Equal(have, want) {
		return fmt.Errorf("the server has the databases %q, want %q", have, want)
	}
	d.out.ok("no stray database: %s", strings.Join(have, ", "))
	return nil
}

// childrenWithin is how long a node may take to wait for a program that has ended.
const childrenWithin = 10 * time.Second

// checkChildren: the nodes are the only processes of theirs, and of the killed ones none is left.
func (d *demo) checkChildren(ctx context.Context, o outcome) error {
	ctx, cancel := context.WithTimeout(ctx, childrenWithin)
	defer cancel()
	var left []process
	for _, n := range d.nodes {
		err := until(ctx, func() (bool, error) {
			all, err := family(n.pid())
			left = all[min(1, len(all)):]
			return len(left) == 0, err
		})
		if err != nil {
			return fmt.Errorf("node %s has left child processes %v: %w", n.name, left, err)
		}
	}
	if err := d.noStrays(ctx, o.kill.killed); err != nil {
		return err
	}
	d.out.ok("no child process is left: pg_dump and pg_restore are gone")
	return nil
}

// noStrays looks for what the killed processes left behind: the demo is its parent then.
func (d *demo) noStrays(ctx context.Context, killed []process) error {
	return until(ctx, func() (bool, error) {
		all, err := family(os.Getpid())
		for _, p := range all {
			if slices.Contains(killed, p) || p.name == "pg_dump" || p.name == "pg_restore" {
				return false, errors.Join(err, fmt.Errorf("stray process %d (%s)", p.pid, p.name))
			}
		}
		return true, err
	})
}

// until asks again until the answer is yes; an error counts only when ctx ends.
func until(ctx context.Context, yes func() (bool, error)) error {
	tick := time.NewTicker(readyTick)
	defer tick.Stop()
	for {
		ok, err := yes()
		if ok {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
