package offline

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/source"
)

// ServerRestore says which whole server is restored, and where.
type ServerRestore struct {
	Shelf    ShelfOptions // its Storage counts for nothing
	Storages []string     // to read from; none: all that are there
	Server   string       // as in the group's settings, or a database that is on it
	AsOf     time.Time    // no backup is younger; zero: now
	// To is a connection to the server that gets it: file:PATH, env:NAME, or one without a password.
	To string
	// File keeps the plan, and what has been done of it. When it is there, that plan goes on.
	File string
	// NoGlobals: roles and tablespaces are there already.
	NoGlobals bool
	// SkipExisting leaves databases that are there as they are; without it they are an error before anything is done.
	SkipExisting bool
	Now          time.Time
}

// ServerRun is the restore of a whole server, begun or to be begun.
type ServerRun struct {
	Resumed bool // the plan was there already
	// Compared is what the server lacks of the roles; nil: nothing is made of them.
	Compared *source.GlobalsDiff

	options ServerRestore
	file    string
	plan    ServerPlan
	shelves *Shelves
	into    source.Source
	text    string // of the roles
}

// OpenServer makes the plan, or reads the one that was begun, and looks at the server; nothing is changed, and no file is written.
// The caller closes it.
func OpenServer(ctx context.Context, o ServerRestore) (*ServerRun, error) {
	r := &ServerRun{options: o, file: o.File}
	var err error
	if r.into, err = handedServer(o.To); err != nil {
		return nil, err
	}
	if r.shelves, err = OpenShelves(ctx, o.Shelf, o.Storages); err != nil {
		return nil, err
	}
	if err := r.open(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// handedServer is the server of a connection that was handed over.
func handedServer(connection string) (source.Source, error) {
	if path, ok := strings.CutPrefix(connection, "file:"); ok && path != "" { // of a command, unlike of a file, it is clear from where
		if abs, err := filepath.Abs(path); err == nil {
			connection = "file:" + abs
		}
	}
	dsn, err := configs.HandedDSN(connection)
	if err != nil {
		return nil, &adviceError{fmt.Errorf("--to: %w", err), "for example --to file:new.dsn, a file that holds postgres://postgres:PASSWORD@HOST/postgres"}
	}
	src, err := OpenSource(configs.Database{Name: "to", DSN: dsn}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, fmt.Errorf("--to: %w", err)
	}
	return src, nil
}

func (r *ServerRun) open(ctx context.Context) error {
	system, err := identity(ctx, r.into)
	if err != nil {
		return err
	}
	address := addressOf(r.into)
	r.plan, err = readPlan(r.file)
	switch {
	case err == nil:
		r.Resumed = true
		err = r.same(system, address)
	case errors.Is(err, fs.ErrNotExist):
		err = r.draw(ctx, system, address)
	}
	if err != nil || r.plan.Globals == "" || r.plan.GlobalsDone != nil {
		return err
	}
	if r.text, err = r.shelves.globals(ctx, r.plan.Globals); err != nil {
		return fmt.Errorf("read the roles of backup %s: %w", r.plan.Globals, err)
	}
	compared, err := keeperOf(r.into).CompareGlobals(ctx, r.attempt("globals"), r.text)
	r.Compared = &compared
	return err
}

// same refuses to go on with a plan that is another one.
func (r *ServerRun) same(system, address string) error {
	p, o := r.plan, r.options
	what := ""
	switch {
	case p.Server != o.Server:
		what = "of server " + p.Server
	case p.System != system || system == "" && p.To != address:
		what = "into another server, " + p.To
	case !o.AsOf.IsZero() && !o.AsOf.Equal(p.AsOf):
		what = "as of " + p.AsOf.UTC().Format(time.RFC3339)
	}
	if what == "" {
		return nil
	}
	return &adviceError{fmt.Errorf("%s holds the plan of a restore %s, made at %s", r.file, what, p.Made.UTC().Format(time.RFC3339)), "name another file by --plan, or remove this one"}
}

// draw makes the plan.
func (r *ServerRun) draw(ctx context.Context, system, address string) error {
	asOf := r.options.AsOf
	if asOf.IsZero() {
		asOf = r.options.Now
	}
	list, err := r.shelves.list(ctx)
	if err != nil {
		return err
	}
	if r.plan, err = planServer(list, r.options.Server, asOf); err != nil {
		return err
	}
	r.plan.To, r.plan.System, r.plan.Made = address, system, r.options.Now
	if r.options.NoGlobals {
		r.plan.Globals = ""
	}
	there, err := databasesOf(ctx, r.into, r.attempt("look"))
	if err != nil {
		return err
	}
	var existing []string
	r.plan.Databases = slices.DeleteFunc(r.plan.Databases, func(d ServerDatabase) bool {
		found := slices.Contains(there, d.Target)
		if found {
			existing = append(existing, d.Target)
			r.plan.Lacking = append(r.plan.Lacking, ServerLacking{d.Target, "a database of that name is there, and stays"})
		}
		return found
	})
	switch {
	case len(existing) > 0 && !r.options.SkipExisting:
		return &adviceError{fmt.Errorf("%s has databases of these names: %s: %w", address, strings.Join(existing, ", "), source.ErrTargetExists),
			"--skip-existing leaves them as they are; to replace one, restore it by itself"}
	case len(r.plan.Databases) == 0 && r.plan.Globals == "":
		return &adviceError{errors.New("there is nothing to restore"), "see fencepost storage list; another --as-of may have more"}
	}
	return nil
}

// Plan is what is to be done, and has been done.
func (r *ServerRun) Plan() ServerPlan { return r.plan }

// Away are storages that could not be looked at.
func (r *ServerRun) Away() []ShelfAway { return r.shelves.Away }

// Close closes the storages.
func (r *ServerRun) Close() error { return r.shelves.Close() }

// ServerStep is told when something begins and when it has ended.
type ServerStep struct {
	What    string // "roles and tablespaces", or "database NAME"
	Began   bool
	Found   bool // it turned out to be done already, by one that was killed
	Problem error
}

// Do carries out what is left of the plan: roles and tablespaces first, then one database after the other. A database that cannot
// be restored does not keep others from it; the first error that concerns all ends it. Whatever ends it, another call, also of
// another process, does what is left and nothing twice. tell may be nil.
func (r *ServerRun) Do(ctx context.Context, tell func(ServerStep)) error {
	if tell == nil {
		tell = func(ServerStep) {}
	}
	if err := r.takeOver(rand.Text()); err != nil {
		return err
	}
	if r.plan.Globals != "" && r.plan.GlobalsDone == nil {
		if err := r.roles(ctx, tell); err != nil {
			return err
		}
	}
	var failed []string
	for i := range r.plan.Databases {
		d := &r.plan.Databases[i]
		if d.Done != nil {
			continue
		}
		tell(ServerStep{What: "database " + d.Target, Began: true})
		found, err := r.database(ctx, d)
		tell(ServerStep{What: "database " + d.Target, Found: found, Problem: err})
		switch {
		case err == nil:
		case ctx.Err() != nil, errors.Is(err, source.ErrUnavailable), errors.Is(err, errTakenOver):
			return err
		default:
			failed = append(failed, d.Target)
		}
	}
	if len(failed) > 0 {
		return &adviceError{fmt.Errorf("%d of %d databases are not restored: %s", len(failed), len(r.plan.Databases), strings.Join(failed, ", ")),
			"mend what stands against it; the same command does only these"}
	}
	return nil
}

func (r *ServerRun) roles(ctx context.Context, tell func(ServerStep)) error {
	const what = "roles and tablespaces"
	tell(ServerStep{What: what, Began: true})
	_, err := keeperOf(r.into).RestoreGlobals(ctx, r.attempt("globals"), r.text)
	if err == nil {
		r.plan.GlobalsDone = new(time.Now())
		err = r.keep()
	}
	tell(ServerStep{What: what, Problem: err})
	return err
}

// database restores one, or finds that a try that was killed has done so.
func (r *ServerRun) database(ctx context.Context, d *ServerDatabase) (found bool, err error) {
	a := r.attempt(d.Target)
	a.Token = max(a.Token, d.Attempt+1)
	if d.Prepared != nil {
		outcome, err := r.into.Settle(ctx, a, *d.Prepared)
		if err != nil {
			return false, r.failed(d, err)
		}
		if outcome == source.Committed {
			return true, r.finished(d)
		}
		a.Token++
	}
	d.Attempt, d.Prepared, d.Problem = a.Token, nil, ""
	if err := r.keep(); err != nil {
		return false, err
	}
	_, err = pipeline.RestoreDirect(ctx, r.shelves.catalog, pipeline.DirectRestore{
		Backup: d.Backup, Into: r.into, Attempt: a,
		Options: source.RestoreOptions{Target: d.Target, RestoreChoices: source.RestoreChoices{Jobs: r.shelves.config.Restore.Jobs}},
		Record: func(p source.Prepared) error {
			d.Prepared = &p
			return r.keep()
		},
	})
	if err != nil {
		return false, r.failed(d, err)
	}
	return false, r.finished(d)
}

func (r *ServerRun) finished(d *ServerDatabase) error {
	d.Done, d.Problem = new(time.Now()), ""
	return r.keep()
}

// failed notes why, unless nobody may write any more.
func (r *ServerRun) failed(d *ServerDatabase, err error) error {
	d.Problem = err.Error()
	if kept := r.keep(); errors.Is(kept, errTakenOver) {
		return kept
	}
	return err
}

// attempt names what is done on the server: those of one database follow each other, over all runs.
func (r *ServerRun) attempt(what string) source.Attempt {
	return shelfAttempt("server " + r.options.Server + " " + what)
}

func identity(ctx context.Context, src source.Source) (string, error) {
	if i, ok := src.(source.Identifier); ok {
		return i.Identity(ctx)
	}
	return "", nil
}

func addressOf(src source.Source) string {
	if p, ok := src.(source.Placed); ok {
		return p.Server()
	}
	return ""
}

func databasesOf(ctx context.Context, src source.Source, a source.Attempt) ([]string, error) {
	l, ok := src.(pipeline.Lister)
	if !ok {
		return nil, errors.New("the server cannot tell which databases it has")
	}
	return l.Databases(ctx, a)
}

// keeperOf is the source as one that keeps roles. What OpenSource opens by a connection is one.
func keeperOf(src source.Source) source.GlobalsKeeper { return src.(source.GlobalsKeeper) }
