package api

import (
	"net/url"
	"strconv"
	"time"
)

// MaxWait is the longest that a request may be waited for; longer ones are cut to it.
const MaxWait = 55 * time.Second

// TaskFilter selects tasks, newest first. The zero value selects the user's own, all
// states, of all databases.
type TaskFilter struct {
	Active   bool   // only those that have not ended
	Internal bool   // those that nobody asked for by hand, too
	Database string // only of this one
	Limit    int    // at most so many; 0: all
	After    string // id of a task: the page behind it; empty: from the newest on
}

// Query is the filter as it stands in a path.
func (f TaskFilter) Query() url.Values {
	q := url.Values{}
	setBool(q, "active", f.Active)
	setBool(q, "internal", f.Internal)
	setText(q, "database", f.Database)
	setInt(q, "limit", f.Limit)
	setText(q, "after", f.After)
	return q
}

// ParseTaskFilter is the inverse of Query.
func ParseTaskFilter(q url.Values) (TaskFilter, error) {
	p := parser{q: q}
	f := TaskFilter{Active: p.bool("active"), Internal: p.bool("internal"), Database: q.Get("database"), Limit: p.int("limit"), After: q.Get("after")}
	return f, p.err
}

// BackupFilter selects backups, newest first. The zero value selects all that are kept.
type BackupFilter struct {
	Database string
	Limit    int    // at most so many; 0: all
	After    string // id of a backup: the page behind it; empty: from the newest on
}

// Query is the filter as it stands in a path.
func (f BackupFilter) Query() url.Values {
	q := url.Values{}
	setText(q, "database", f.Database)
	setInt(q, "limit", f.Limit)
	setText(q, "after", f.After)
	return q
}

// ParseBackupFilter is the inverse of Query.
func ParseBackupFilter(q url.Values) (BackupFilter, error) {
	p := parser{q: q}
	f := BackupFilter{Database: q.Get("database"), Limit: p.int("limit"), After: q.Get("after")}
	return f, p.err
}

// CreateBackup asks for a backup of a database.
type CreateBackup struct {
	Database string `json:"database"`
	// Storages are the names of those that shall get a copy; none: all.
	Storages []string `json:"storages,omitempty"`

	// What of the database; nothing given: all of it. Names may hold * and ?, and in double quotes mean just themselves;
	// one that matches nothing is an error.
	Format         string   `json:"format,omitempty"`          // custom (also "") or plain
	Schemas        []string `json:"schemas,omitempty"`         // only these
	Tables         []string `json:"tables,omitempty"`          // only these: table or schema.table; not together with schemas
	ExcludeSchemas []string `json:"exclude_schemas,omitempty"` // not these; not together with tables
	ExcludeTables  []string `json:"exclude_tables,omitempty"`  // not these
	SchemaOnly     bool     `json:"schema_only,omitempty"`     // no rows, no large objects
	NoLargeObjects bool     `json:"no_large_objects,omitempty"`
	NoGlobals      bool     `json:"no_globals,omitempty"`     // without the roles and tablespaces of the server
	RolePasswords  bool     `json:"role_passwords,omitempty"` // with the hashes of the roles' passwords, which takes a superuser
	Jobs           int      `json:"jobs,omitempty"`           // streams that the rows are divided among, at most 32; 0: as configured

	Needs []string `json:"needs,omitempty"` // labels that the node must carry, beside those that the database always needs
}

// RestoreBackup asks for a backup to be restored into a database.
type RestoreBackup struct {
	Backup string `json:"backup"` // for a preview empty: the newest good one of Database
	// Database is the configured name whose server receives it; empty: the backup's.
	Database string `json:"database,omitempty"`
	// Target is the name of the database to make; empty: the one that was backed up.
	Target string `json:"target,omitempty"`
	// Replace allows an existing database of that name to be replaced.
	Replace bool `json:"replace,omitempty"`
	// Storage is the one to read from; empty: any that has a copy.
	Storage string `json:"storage,omitempty"`

	// Needs are labels that the node must carry, beside those that the database always needs.
	Needs []string `json:"needs,omitempty"`

	// AcceptForeign restores a backup that this group has not made, or whose manifest is not signed.
	AcceptForeign bool `json:"accept_foreign,omitempty"`

	// InPlace restores into the database itself, in one transaction, without an undo. With Replace what is in the backup
	// replaces what has its names, and all else stays; without, the database must be empty.
	InPlace         bool     `json:"in_place,omitempty"`
	Disconnect      bool     `json:"disconnect,omitempty"`        // in place: clients that it waits for are disconnected
	NoOwner         bool     `json:"no_owner,omitempty"`          // all belongs to the role that restores
	NoPrivileges    bool     `json:"no_privileges,omitempty"`     // no rights are granted
	NoSubscriptions bool     `json:"no_subscriptions,omitempty"`  // replication does not go on from the copy
	NoTablespaces   bool     `json:"no_tablespaces,omitempty"`    // all lies where the server puts it by default
	NoEventTriggers bool     `json:"no_event_triggers,omitempty"` // not in place
	SchemaOnly      bool     `json:"schema_only,omitempty"`       // no rows, no large objects
	Schemas         []string `json:"schemas,omitempty"`           // only these, by name
	Tables          []string `json:"tables,omitempty"`            // only these, by name without schema; without indexes and keys
	Jobs            int      `json:"jobs,omitempty"`              // sessions at the same time, at most 32; 0: as many as the backup has streams
}

// RecoveryName says which open recovery is meant.
type RecoveryName struct {
	Component string `json:"component"`
	Run       string `json:"run"` // the closed run: its id, or enough of its first digits
}

// DropRecovery ends a recovery for good: its claims are free, nothing is recovered.
type DropRecovery struct {
	RecoveryName
	Why string `json:"why"` // one sentence, kept in the log
}

// FenceName says which component of which node is fenced.
type FenceName struct {
	Component string `json:"component"`
	Node      string `json:"node"`
}

// LowerFence lowers a maintenance fence, or with Force takes a recovery's fence from its holder: the next candidate gets it.
type LowerFence struct {
	FenceName
	Token uint64 `json:"token"` // of the fence that is meant
	Force bool   `json:"force,omitempty"`
	Why   string `json:"why,omitempty"` // one sentence, kept in the log
}

// NodeName says which node is meant.
type NodeName struct {
	Node string `json:"node"`
}

// Rebase has the group's numbers go on above everything that is known to have been given out.
type Rebase struct {
	Above uint64 `json:"above,omitempty"` // and above this one
	Why   string `json:"why"`             // one sentence, kept in the log
}

func setBool(q url.Values, key string, value bool) {
	if value {
		q.Set(key, "true")
	}
}

func setText(q url.Values, key, value string) {
	if value != "" {
		q.Set(key, value)
	}
}

func setInt(q url.Values, key string, value int) {
	if value != 0 {
		q.Set(key, strconv.Itoa(value))
	}
}

// parser reads a query and keeps the first problem.
type parser struct {
	q   url.Values
	err error
}

func (p *parser) bool(key string) bool {
	text := p.q.Get(key)
	if text == "" {
		return false
	}
	value, err := strconv.ParseBool(text)
	p.fail(err, key, "true or false")
	return value
}

func (p *parser) int(key string) int {
	text := p.q.Get(key)
	if text == "" {
		return 0
	}
	value, err := strconv.ParseUint(text, 10, 31)
	p.fail(err, key, "a number from 0")
	return int(value)
}

func (p *parser) fail(err error, key, want string) {
	if err != nil && p.err == nil {
		p.err = &Error{Code: CodeUsage, Message: "query " + key + ": want " + want}
	}
}
