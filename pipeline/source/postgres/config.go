package postgres

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strconv"
	"time"

	"github.com/fencepost/fencepost/pipeline/source"
)

// Config says which database a Source dumps, and how it reaches the server.
type Config struct {
	// DSN is a connection URL or keyword=value string as libpq knows them, with a database. What it leaves out comes
	// from the environment (PGHOST, PGPASSFILE, PGSERVICE, …). A password in it never leaves this process but in the
	// environment of child processes. sslpassword is refused: it could reach them only through their arguments.
	DSN string
	// Database is the database, when it is not the one that the DSN names. Any name is taken as it is.
	Database string
	// BinDir is where pg_dump and pg_restore are. Default: the fitting version among the places where packages put
	// them and PATH.
	BinDir string
	// Maintenance is the database in which databases are created, renamed and dropped; it must not be a target of
	// restores. Default: "postgres", else "template1".
	Maintenance string
	// Grace is how long a child may take to end after it was asked to (SIGTERM) before it is killed. Default 5 s.
	Grace time.Duration
	// ConnectTimeout bounds one try to connect to one address. Default: what the DSN says, else 10 s.
	ConnectTimeout time.Duration
	// Yield says what a dump does when somebody waits for its locks longer than YieldAfter. Default: nothing.
	Yield Yield
	// YieldAfter is how long somebody may wait for a dump, measured to a quarter of it or a second. Default 30 s.
	YieldAfter time.Duration
	// Standby says whether dumps look for a standby among the servers of the DSN. Default: the first that answers.
	Standby StandbyUse
	// StandbyMaxAge is how far a standby may be behind to be dumped. Default 5 min.
	StandbyMaxAge time.Duration
	// Jobs is the number of streams of a dump that does not say itself; see source.DumpOptions. Default one archive.
	Jobs int
	// Globals says what of the server goes with a dump that does not say itself. Default: all but the password hashes.
	Globals GlobalsUse
	// Logger receives what happens (clients disconnected, warnings of the programs). Default: nothing is logged.
	Logger *slog.Logger
}

const (
	defaultGrace          = 5 * time.Second
	defaultYieldAfter     = 30 * time.Second
	defaultConnectTimeout = 10 * time.Second
	cleanupTimeout        = 30 * time.Second // for what must be done although the caller's context has ended
)

// Source is one PostgreSQL database; it implements source.Source. It holds no connection and no goroutine between calls.
type Source struct {
	cfg   Config
	where where
	log   *slog.Logger

	inMemory int64         // see maxInMemory
	lockWait time.Duration // see streamsLockWait
}

var _ source.Source = (*Source)(nil)

// New checks the configuration. It does not connect.
func New(cfg Config) (*Source, error) {
	if cfg.Grace < 0 || cfg.ConnectTimeout < 0 || cfg.YieldAfter < 0 || cfg.StandbyMaxAge < 0 {
		return nil, errors.New("configure a postgres source: grace, connect timeout, yield after and standby max age must not be negative")
	}
	if cfg.Yield != YieldNever && cfg.Yield != YieldWarn && cfg.Yield != YieldCancel {
		return nil, fmt.Errorf("configure a postgres source: yield %q is not %s or %s", cfg.Yield, YieldWarn, YieldCancel)
	}
	if cfg.Standby != StandbyAny && cfg.Standby != StandbyPrefer {
		return nil, fmt.Errorf("configure a postgres source: standby %q is not %s", cfg.Standby, StandbyPrefer)
	}
	if cfg.Globals != GlobalsPlain && cfg.Globals != GlobalsPasswords && cfg.Globals != GlobalsNone {
		return nil, fmt.Errorf("configure a postgres source: globals %q is not %s or %s", cfg.Globals, GlobalsPasswords, GlobalsNone)
	}
	if cfg.StandbyMaxAge == 0 {
		cfg.StandbyMaxAge = defaultStandbyMaxAge
	}
	if err := checkJobs(cfg.Jobs); err != nil {
		return nil, fmt.Errorf("configure a postgres source: %w", err)
	}
	if cfg.YieldAfter == 0 {
		cfg.YieldAfter = defaultYieldAfter
	}
	if cfg.Grace == 0 {
		cfg.Grace = defaultGrace
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	w, err := parseDSN(cfg.DSN, cfg.ConnectTimeout)
	if err != nil {
		return nil, fmt.Errorf("configure a postgres source: %w", err)
	}
	if cfg.Database != "" {
		w.base.Database = cfg.Database
	}
	return &Source{cfg: cfg, where: w, log: cfg.Logger, inMemory: maxInMemory, lockWait: streamsLockWait}, nil
}

// Database returns the name of the database that the DSN names.
func (s *Source) Database() string { return s.where.base.Database }

// Server implements source.Placed: host and port, the first of several.
func (s *Source) Server() string {
	return net.JoinHostPort(s.where.base.Host, strconv.Itoa(int(s.where.base.Port)))
}

var taskID = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

// tag is the application_name of every session of an attempt; at most 59 of PostgreSQL's 63 bytes.
func tag(a source.Attempt) string { return fmt.Sprintf("fencepost:%s:%d", a.Task, a.Token) }

func checkAttempt(a source.Attempt) error {
	if !taskID.MatchString(a.Task) {
		return fmt.Errorf("task id %q is not 1 to 32 of a-z, 0-9 and dash", a.Task)
	}
	if a.Token == 0 || a.Token >= 1<<53 {
		return fmt.Errorf("token %d is not between 1 and 2^53", a.Token)
	}
	return nil
}
