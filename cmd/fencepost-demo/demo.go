package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline/pgtest"
)

const (
	database = "shop"
	restored = "shop restored"
)

// size is how large a demo is.
type size struct {
	sample int64  // bytes that the database's dump shall have, about
	least  int64  // and must have
	rate   string // of the backup, bytes a second in the words of the configuration, so that the upload takes a while
	read   int64  // bytes that the backup has read when its node is killed
	stored int64  // and that each storage has taken
}

// full is the size of the demo that people see.
func full() size {
	return size{sample: 220 << 20, least: 200e6, rate: "9MiB", read: 40 << 20, stored: 8 << 20}
}

// followerWithin bounds the second kill; it is below the TTL of the daemons' profile, so that silence proves nothing yet.
const followerWithin = 30 * time.Second

type options struct {
	size          size
	daemon        string
	keep, verbose bool
}

// demo is one run of it. All methods are called from the main goroutine.
type demo struct {
	options
	out *printer

	dir      string
	server   *pgtest.Server
	nodes    []*node
	storages []store
	cleanups []func() error
}

// store is one storage of the group.
type store struct{ name, dir string }

// run is the whole demo; whatever was started is gone when it returns. The end of asked is Ctrl-C.
func (d *demo) run(asked context.Context) error {
	ctx, cancel := context.WithTimeoutCause(asked, limit, fmt.Errorf("the demo has taken longer than %v", limit))
	defer cancel()
	err := d.play(ctx)
	switch {
	case err == nil:
	case asked.Err() != nil:
		err = errors.New("interrupted")
	default:
		d.showTrouble()
	}
	if d.keep && asked.Err() == nil && len(d.nodes) > 0 {
		d.lookAround(asked, err)
	}
	return errors.Join(err, d.cleanUp(), d.nothingLeft(context.WithoutCancel(asked)))
}

func (d *demo) play(ctx context.Context) error {
	if err := ownStrays(); err != nil {
		return err
	}
	d.out.line("fencepost demo: three nodes, a backup, and kill -9\n")
	if err := d.setUp(ctx); err != nil {
		return err
	}
	done, err := d.killInTheMiddle(ctx)
	if err != nil {
		return err
	}
	if err := d.killFollower(ctx); err != nil {
		return err
	}
	d.out.line("\nWhat must hold\n")
	if err := d.check(ctx, done); err != nil || d.keep {
		return err
	}
	return d.stopNodes(ctx)
}

// setUp brings up the server, the sample and the nodes.
func (d *demo) setUp(ctx context.Context) (err error) {
	if _, err := os.Stat(d.daemon); err != nil {
		return fmt.Errorf("find the daemon (make build makes it): %w", err)
	}
	if d.dir, err = os.MkdirTemp("", "fencepost-demo-"); err != nil {
		return fmt.Errorf("make a directory for the demo: %w", err)
	}
	d.cleanups = append(d.cleanups, func() error { return os.RemoveAll(d.dir) })
	if err := os.Chmod(d.dir, 0o711); err != nil { // the server's user may be another
		return fmt.Errorf("open the demo's directory: %w", err)
	}
	began := time.Now()
	if d.server, err = pgtest.Start(ctx, filepath.Join(d.dir, "postgresql"), pgtest.Options{}); err != nil {
		return err
	}
	d.cleanups = append(d.cleanups, d.server.Stop)
	d.out.step(began, "a private PostgreSQL on port %d", d.server.Port)

	began = time.Now()
	dsn, err := d.server.CreateDatabase(ctx, database)
	if err != nil {
		return err
	}
	if err := pgtest.Sample(ctx, dsn, d.size.sample); err != nil {
		return err
	}
	d.out.step(began, "a sample database, a dump of which has about %s", megabytes(d.size.sample))

	began = time.Now()
	if err := d.startNodes(ctx, dsn); err != nil {
		return err
	}
	leader, err := d.awaitReady(ctx)
	if err != nil {
		return err
	}
	d.out.step(began, "three nodes, each a process: %s; %s leads", names(d.nodes), leader)
	return nil
}

// outcome is what became of the backup.
type outcome struct {
	kill kill
	task api.Task // as it ended
}

// killInTheMiddle plans a backup, kills its node while it uploads, starts that node again, waits for the end and tells
// what happened.
func (d *demo) killInTheMiddle(ctx context.Context) (outcome, error) {
	began := time.Now()
	task, err := d.awaitUpload(ctx)
	if err != nil {
		return outcome{}, err
	}
	d.out.step(began, "task %s, attempt %d, runs on %s: %s, %s read, %s", task.ID, task.Attempt, task.Node, task.State,
		megabytes(task.Progress.Read), stored(task.Progress.Stored))
	victim := d.node(task.Node)
	leader, err := d.awaitReady(ctx)
	if err != nil {
		return outcome{}, err
	}
	k := kill{node: task.Node, run: task.Run, task: task.ID, attempt: task.Attempt, token: task.Token, leader: leader == task.Node}
	if k.at, k.killed, err = victim.kill(); err != nil {
		return outcome{}, err
	}
	if err := victim.start(ctx); err != nil {
		return outcome{}, err
	}
	k.restarted, k.pid = time.Now(), victim.pid()
	survivor := d.nodes[slices.IndexFunc(d.nodes, func(n *node) bool { return n != victim })]
	task, err = survivor.client.WaitTask(ctx, task.ID, nil)
	if err != nil {
		return outcome{}, fmt.Errorf("wait for the end of the backup: %w", err)
	}
	if err := api.TaskError(task); err != nil {
		return outcome{}, err
	}
	if _, err := d.awaitReady(ctx); err != nil {
		return outcome{}, err
	}
	return outcome{kill: k, task: task}, d.tell(k)
}

// killFollower kills a node that does not lead and has nothing to do: so soon is a death proven and a fence up.
func (d *demo) killFollower(ctx context.Context) error {
	d.out.line("\nA follower dies, with nothing to do; it is started again when its recovery has ended\n")
	leader, err := d.awaitReady(ctx)
	if err != nil {
		return err
	}
	victim := d.nodes[slices.IndexFunc(d.nodes, func(n *node) bool { return n.name != leader })]
	status, err := victim.client.Status(ctx)
	if err != nil {
		return fmt.Errorf("ask %s for its run: %w", victim.name, err)
	}
	k := kill{node: victim.name, run: status.Run}
	if k.at, k.killed, err = victim.kill(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, followerWithin)
	defer cancel()
	var rows []row
	err = until(ctx, func() (bool, error) {
		log, err := readLogs(d.nodes, k.at)
		if err != nil {
			return false, err
		}
		if rows, err = timeline(log, recoveryScenes(k, log)); err == nil && !closedBy(log, k, "refused") {
			err = errors.New("its death was not proven by what its ports answer")
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("wait for the recovery of %s: %w", victim.name, err)
	}
	d.show(k, rows)
	if err := victim.start(ctx); err != nil {
		return err
	}
	_, err = d.awaitReady(ctx)
	return err
}

// awaitUpload plans a backup and waits until a good part of it is under way to both storages.
func (d *demo) awaitUpload(ctx context.Context) (api.Task, error) {
	client := d.nodes[0].client
	task, err := client.CreateBackup(ctx, api.CreateBackup{Database: database})
	if err != nil {
		return task, fmt.Errorf("plan a backup: %w", err)
	}
	task, err = watchTask(ctx, client, task.ID, func(t api.Task) bool {
		if t.State != "uploading" || t.Progress.Read < d.size.read || len(t.Progress.Stored) < len(d.storages) {
			return false
		}
		for _, n := range t.Progress.Stored {
			if n < d.size.stored {
				return false
			}
		}
		return true
	})
	if err == nil && task.Final {
		err = fmt.Errorf("the backup was over before the kill: it is %s%s", task.State, strings.TrimRight(": "+task.Error, ": "))
	}
	return task, err
}

// watchTask follows a task until enough says so or it has ended.
func watchTask(ctx context.Context, c *api.Client, id string, enough func(api.Task) bool) (last api.Task, err error) {
	err = api.Watch(ctx, c, api.TaskPath(id), func(t api.Task) bool {
		last = t
		return !t.Final && !enough(t)
	})
	if err != nil {
		return last, fmt.Errorf("watch task %s: %w", id, err)
	}
	return last, nil
}

// cleanUp removes what is there, last things first. Nodes that still run are killed: nothing of them is needed.
func (d *demo) cleanUp() error {
	var errs []error
	for _, n := range d.nodes {
		errs = append(errs, n.end())
	}
	for _, undo := range slices.Backward(d.cleanups) {
		errs = append(errs, undo())
	}
	d.cleanups = nil
	return errors.Join(errs...)
}
