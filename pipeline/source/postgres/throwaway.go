package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fencepost/fencepost/pipeline/source"
)

// ThrowawayConfig says how the servers of a Throwaway are made.
type ThrowawayConfig struct {
	// Dir is an absolute folder in which a server's folder is made; it needs room for the whole database. When this process
	// runs as root, every user must be able to reach it. Default: the system's folder for temporary files.
	Dir string
	// BinDir is where initdb, postgres and the client programs are. Default: the fitting version that is installed.
	BinDir string
	// Logger receives what happens. Default: nothing is logged.
	Logger *slog.Logger
}

// Throwaway is a source.Source that backups are restored into to verify them, and that holds nothing: each restore gets a
// private server of its own, which is made before and removed after it, whatever became of it. The server listens on a
// socket in its folder only, with a password of its own. It runs as this process's user, or as nobody when that is root: what
// a backup holds (functions of indexes and constraints) is run by a restore, and must not reach what root does.
//
// When this process dies, the kernel closes the input of the server's keeper, a shell, which ends the server and removes its
// folder. What both leave, because the machine or the shell died too, is removed by Sweep.
type Throwaway struct {
	dir    string
	finder *Source // of programs
}

var _ source.Source = (*Throwaway)(nil)

// NewThrowaway checks the configuration; it makes nothing.
func NewThrowaway(cfg ThrowawayConfig) (*Throwaway, error) {
	if cfg.Dir == "" {
		cfg.Dir = os.TempDir()
	}
	if !filepath.IsAbs(cfg.Dir) {
		return nil, fmt.Errorf("configure a throw-away server: dir %q is not absolute", cfg.Dir)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Throwaway{dir: cfg.Dir, finder: &Source{cfg: Config{BinDir: cfg.BinDir, Grace: defaultGrace, Logger: cfg.Logger}, log: cfg.Logger}}, nil
}

// Identity implements source.Identifier: no server that backups are made of has this name.
func (t *Throwaway) Identity(context.Context) (string, error) { return "throw-away", nil }

// Dump implements source.Source: it always fails.
func (t *Throwaway) Dump(context.Context, source.Attempt) (source.Dump, error) {
	return nil, errors.New("dump a throw-away server: it holds nothing")
}

// Settle implements source.Source. A dead attempt's server has ended with its process; what is left of it on this machine is removed.
func (t *Throwaway) Settle(ctx context.Context, _ source.Attempt, _ source.Prepared) (source.Outcome, error) {
	t.Sweep(ctx)
	return source.Undone, nil
}

// Sweep removes what dead processes have left in the folder for servers. Call it at the start of a process, too.
func (t *Throwaway) Sweep(ctx context.Context) {
	left, err := sweepServers(ctx, t.dir)
	if len(left) > 0 {
		t.finder.log.InfoContext(ctx, "removed what dead processes have left of throw-away servers", "folders", left)
	}
	if err != nil {
		t.finder.log.WarnContext(ctx, "the remains of a throw-away server may be left", "dir", t.dir, "error", err)
	}
}

// roomBeside is what a server needs beside the database: its own catalogs, and write-ahead log.
const roomBeside = 256 << 20

// Restore implements source.Source: it makes the server.
func (t *Throwaway) Restore(ctx context.Context, a source.Attempt, o source.RestoreOptions) (source.Restore, error) {
	t.Sweep(ctx)
	doing := "make a throw-away server for the restore"
	initdb, err := t.finder.findTool(ctx, "initdb", max(majorOf(o.Info.ServerVersion), 1))
	if err != nil {
		return nil, t.finder.wrap(ctx, err, "%s", doing)
	}
	free, err := freeBytes(t.dir)
	if err != nil {
		return nil, t.finder.wrap(ctx, fmt.Errorf("see how much room is in %s: %w", t.dir, err), "%s", doing)
	}
	if need := o.Info.EstimateBytes + roomBeside; free < need {
		return nil, t.finder.errorf(problem{fmt.Sprintf("it needs about %d MB in %s, where %d MB are free", need>>20, t.dir, free>>20),
			"free space there, or name another folder (dir)", []error{source.ErrUnavailable}}, "%s", doing)
	}
	server, err := startServer(ctx, t.finder, filepath.Dir(initdb.path), t.dir)
	if err != nil {
		return nil, t.finder.wrap(ctx, err, "%s", doing)
	}
	r, err := t.into(ctx, server, a, o)
	if err != nil {
		return nil, errors.Join(err, server.stop())
	}
	return &throwawayRestore{r, server}, nil
}

// into begins the restore on a server that was just started.
func (t *Throwaway) into(ctx context.Context, server *privateServer, a source.Attempt, o source.RestoreOptions) (source.Restore, error) {
	there, err := New(Config{DSN: server.dsn(), BinDir: t.finder.cfg.BinDir, Logger: t.finder.log})
	if err != nil {
		return nil, err
	}
	if err := server.awaitReady(ctx, there, a); err != nil {
		return nil, there.wrap(ctx, err, "start a throw-away server")
	}
	return there.Restore(ctx, a, o)
}

// awaitReady tries to connect until the server answers or has ended.
func (p *privateServer) awaitReady(ctx context.Context, there *Source, a source.Attempt) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := there.connect(ctx, a, "postgres")
		if err == nil {
			conn.close()
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("the server ended: %s", p.said())
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// throwawayRestore is a restore whose server goes with it.
type throwawayRestore struct {
	source.Restore
	server *privateServer
}

// Commit implements source.Restore: it always fails.
func (r *throwawayRestore) Commit(context.Context) error {
	return errors.New("commit a restore into a throw-away server: nothing stays there")
}

// Abort implements source.Restore: the server goes, and all that is in it.
func (r *throwawayRestore) Abort() error { return r.server.stop() }
