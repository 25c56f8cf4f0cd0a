package source

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
)

// Names of the parts a PostgreSQL dump consists of. Part names are relative object names (lower case, no slash).
const (
	PartData     = "data"         // the archive itself, in the format that Info says; see PartPre for several
	PartDatabase = "database.sql" // what an archive leaves out: owner, rights and settings of the database
	PartGlobals  = "globals.sql"  // roles and tablespaces of the whole server; for people, a restore does not run it
)

// Errors a caller branches on. Implementations wrap them.
var (
	// ErrUnavailable: the server cannot be reached or refuses connections just now; the attempt has not failed, try later.
	ErrUnavailable = errors.New("source is unavailable")
	// ErrIncomplete: the dump or the restore ended before its end; nothing of it may be kept.
	ErrIncomplete = errors.New("stream is incomplete")
	// ErrTargetExists: the restore target exists and replacing it was not asked for.
	ErrTargetExists = errors.New("target database exists")
	// ErrSuperseded: the target moved on (its database is not the one this attempt prepared against, or the prepared
	// one is gone): a successor settled this attempt. Nothing was changed.
	ErrSuperseded = errors.New("attempt was superseded")
)

// Attempt names one execution of a task. It is carried in the application_name of every session the attempt opens, so
// that a successor can find and end them.
type Attempt struct {
	Task  string // task id, at most 32 bytes of [a-z0-9-]
	Token uint64 // fencing token of the attempt; below 2^53, larger for later attempts
}

// A Source is one database that can be dumped, and into whose server a dump can be restored. Methods may be called from
// several goroutines; each may block on the network until ctx ends. Secrets never appear in errors.
type Source interface {
	// Dump checks that a dump can be made (server reachable, client program fits, rights, formats), fixes the moment of
	// the snapshot and returns a Dump to stream from. The caller closes it.
	Dump(ctx context.Context, a Attempt) (Dump, error)
	// Restore prepares a restore: checks the target, creates the new database. The caller ends it with Commit or Abort.
	Restore(ctx context.Context, a Attempt, o RestoreOptions) (Restore, error)
	// Settle ends whatever attempts of a task with a token below a.Token left on the server: sessions are ended until
	// none is left, prepared databases are dropped. prepared is what the latest attempt recorded before its Commit
	// (zero when it recorded nothing): when that very database has got the target's name, the commit happened, even if a
	// later restore replaced it since; Settle says so and leaves it alone. Idempotent. Called by a recoverer, or by a new attempt before it begins.
	Settle(ctx context.Context, a Attempt, prepared Prepared) (Outcome, error)
}

// A ProgramHaver is a Source that works with client programs of its engine.
type ProgramHaver interface {
	// Programs are the paths of those that this machine has, or may have.
	Programs() []string
	// ClientMajor is the newest major version of which this machine has the programs; 0 when it has none. It asks the
	// machine only, not the server.
	ClientMajor(ctx context.Context) int
}

// A Placed source can tell where its server is.
type Placed interface {
	// Server is the address, without user, password and database: the same for all databases of one server.
	Server() string
}

// An Identifier is a Source that can tell which server it is on.
type Identifier interface {
	// Identity returns what no two servers share and a server never changes ("" when it may not be read).
	Identity(ctx context.Context) (string, error)
}

// A Dump is one consistent picture of a database, streamed part by part. Not safe for concurrent use, but that parts
// which hold rows (IsStream) and follow each other in Parts may be written at the same time.
type Dump interface {
	// Parts lists the parts in the order in which they must be written; PartData is among them.
	Parts() []string
	// Write streams one part to w, without temporary files and with bounded memory. It returns nil only when the
	// producer ended well (exit code 0, no left-out content, stream whole): an error means that nothing of the
	// part may be kept. Cancelling ctx ends the producer (politely first) and its session on the server; Write returns
	// only after the child process is gone.
	Write(ctx context.Context, part string, w io.Writer) error
	// Info describes the dump; complete after the last Write returned nil.
	Info() Info
	// Close ends the snapshot and its session. Safe to call twice.
	Close() error
}

// Info is what a manifest keeps about a dump.
type Info struct {
	Kind          string            // "postgres"
	Format        string            // FormatCustom or FormatPlain; "" is custom
	ServerVersion string            // "15.18"
	ToolVersion   string            // version of the dumping program
	SystemID      string            // identifier of the database cluster
	Database      string            // name of the database that was dumped
	Encoding      string            // server encoding, "UTF8"
	Locale        Locale            // how the database sorts and classifies text
	Extensions    map[string]string // name → version
	Options       DumpOptions       `json:",omitzero"`  // what was asked for
	Streams       int               `json:",omitempty"` // parts that hold rows, beside PartPre and PartPost; 0: one archive holds all
	Schemas       []string          `json:",omitempty"` // that hold what was dumped; nil: unknown, or too many to list
	Roles         []string          `json:",omitempty"` // that own something in it or have rights on it; nil: unknown
	Counts        map[string]int64  `json:",omitempty"` // kind of object → how many it holds; nil: unknown
	Standby       *Standby          `json:",omitempty"` // nil: the primary was dumped
	Globals       *Globals          `json:",omitempty"` // nil: not asked for (DumpOptions.NoGlobals), or of a source that has none
	AsOf          time.Time         // time of the snapshot, by the server's clock
	EstimateBytes int64             // pg_database_size at the start; an estimate only
}

// ClientMajor is the major version of client programs that can do something with a server or an archive of these versions;
// 0 when that is not known.
func (i Info) ClientMajor() int { return max(MajorOf(i.ServerVersion), MajorOf(i.ToolVersion)) }

// MajorOf is the leading number of a version: 15 for "15.18", 0 when there is none.
func MajorOf(version string) int {
	digits, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// Standby says what a dump of a standby lacks.
type Standby struct {
	Age      time.Duration // how far it was behind the primary, as far as it knew
	Unlogged int           // unlogged tables: they are dumped empty
}

// Globals says what became of PartGlobals.
type Globals struct {
	Passwords bool   `json:",omitempty"` // the hashes of the roles' passwords are in it
	Lacking   string `json:",omitempty"` // why the dump has no PartGlobals although it was asked for; "": it has
}

// Locale is what a database must be created with, since it cannot be changed later. Zero: unknown, the server's default.
type Locale struct {
	Provider string // "c" libc, "i" ICU, "b" built in; "" before PostgreSQL 15
	Collate  string // LC_COLLATE, "de_DE.UTF-8"
	Ctype    string // LC_CTYPE
	Name     string // locale of the provider, when that is not libc
}

// RestoreOptions say what a restore may do.
type RestoreOptions struct {
	Target  string        // name of the database to make or replace
	Replace bool          // an existing target may be replaced
	KeepOld time.Duration // how long the replaced database is kept as the undo; 0 = dropped with the swap
	Names   bool          // Check also compares the names of all objects, as a verification does; not InPlace
	Info    Info          // of the backup to be restored: versions, encoding, extensions, roles are checked before the start

	RestoreChoices
}

// Prepared identifies a filled database just before it is swapped in, or a restore in place. It is written to the ledger under the attempt's
// token before Commit, so that a recoverer can tell whether the commit happened.
type Prepared struct {
	Database string `json:"database,omitempty"` // name of the prepared database
	ID       uint32 `json:"id,omitempty"`       // its OID, which survives the rename
	Target   string `json:"target,omitempty"`   // name it will get
	Replaces uint32 `json:"replaces,omitempty"` // OID of the database it replaces; 0 when there was none
	Undo     string `json:"undo,omitempty"`     // name under which the replaced database is kept

	// InPlace: the restore goes into Target itself; ID is then the OID of Target, or 0 while it is not known yet. A
	// recoverer says InPlace and Target even when the attempt recorded nothing.
	InPlace bool `json:"in_place,omitempty"`
}

// A Restore is one attempt to fill a new database and to swap it in. Not safe for concurrent use, but that parts of one
// stage may be read at the same time.
type Restore interface {
	// Read consumes one part, in the order of Stages. An error of r (a cut stream, a hash
	// that does not fit) must arrive before end of input is taken for the end: Read then fails and nothing is kept.
	Read(ctx context.Context, part string, r io.Reader) error
	// Check compares what is in the new database with the archive's list and returns what Commit will swap.
	Check(ctx context.Context) (Prepared, error)
	// Commit swaps the new database in, in one transaction that compares the identity of what it replaces:
	// ErrSuperseded when either is not the one that was prepared. After an unclear answer the outcome is read from the
	// server, never guessed.
	Commit(ctx context.Context) error
	// Abort drops what was prepared. Safe after Commit (then it does nothing) and twice. Uses a context of its own.
	Abort() error
}

// Outcome says what Settle found.
type Outcome int

// Outcomes of Settle.
const (
	Undone    Outcome = iota // no effect of the attempts is visible in the target, and none can become visible
	Committed                // the prepared database got the target's name: the restore happened
)
