package source

import (
	"context"
	"fmt"
	"reflect"
	"strings"
)

// Formats of PartData.
const (
	FormatCustom = "custom" // pg_dump's archive: the default
	FormatPlain  = "plain"  // SQL for psql; not for databases with large objects
)

// DumpOptions say what of a database a dump holds. The zero value means all of it, as an archive.
//
// Filters are patterns: * and ? stand for any text and any character, everything else for itself, in upper or lower
// case as it is; what is in double quotes only for itself ("" is a quote there). A table may have a schema before a dot;
// without one it is looked for in every schema. A filter that matches nothing is an error.
type DumpOptions struct {
	Format         string   `json:"format,omitempty"`          // FormatCustom (also "") or FormatPlain
	Schemas        []string `json:"schemas,omitempty"`         // only these, with all that is in them
	Tables         []string `json:"tables,omitempty"`          // only these tables, views and sequences; not together with Schemas
	ExcludeSchemas []string `json:"exclude_schemas,omitempty"` // all but these; not together with Tables
	ExcludeTables  []string `json:"exclude_tables,omitempty"`  // all but these
	ExcludeRows    []string `json:"exclude_rows,omitempty"`    // tables that are dumped empty
	SchemaOnly     bool     `json:"schema_only,omitempty"`     // no rows and no large objects

	// Jobs is how many streams the rows are divided among, at most MaxStreams; 0 and 1 make one archive. The largest tables are
	// spread over the streams by size; a table is never divided. Each stream is a session and a process. Not for FormatPlain.
	Jobs int `json:"jobs,omitempty"`

	// NoLargeObjects leaves large objects out. They belong to no schema or table, so that filters leave them in.
	NoLargeObjects bool `json:"no_large_objects,omitempty"`
	// NoSubscriptions leaves subscriptions out, which only a superuser can dump. Chosen schemas and tables do so too.
	NoSubscriptions bool `json:"no_subscriptions,omitempty"`
	// NoGlobals leaves PartGlobals out. It is read beside the snapshot; what became of it, Info.Globals says.
	NoGlobals bool `json:"no_globals,omitempty"`
	// RolePasswords adds the password hashes of roles to PartGlobals, which only a superuser may read: an error for others.
	// Whoever reads such a backup can try to guess the passwords: encrypt it. Not together with NoGlobals.
	RolePasswords bool `json:"role_passwords,omitempty"`
}

// IsZero tells whether nothing special is asked for.
func (o DumpOptions) IsZero() bool { return reflect.ValueOf(o).IsZero() }

// Partial says in words which part of a database a dump with these options holds; empty: all that a restore needs. Such a backup
// is never the good backup of its database, however young.
func (o DumpOptions) Partial() string {
	var parts []string
	add := func(what string, names []string) {
		if len(names) > 0 {
			parts = append(parts, what+strings.Join(names, ", "))
		}
	}
	add("only schemas ", o.Schemas)
	add("only tables ", o.Tables)
	add("without schemas ", o.ExcludeSchemas)
	add("without tables ", o.ExcludeTables)
	add("without the rows of ", o.ExcludeRows)
	if o.SchemaOnly {
		parts = append(parts, "without any rows")
	}
	if o.NoLargeObjects {
		parts = append(parts, "without large objects")
	}
	return strings.Join(parts, "; ")
}

// A Chooser is a Source whose dumps can be told what to hold.
type Chooser interface {
	// DumpWith is Dump with options. Wrong options are errors before anything is read.
	DumpWith(ctx context.Context, a Attempt, o DumpOptions) (Dump, error)
}

// A Checker can tell that options are wrong without reading anything.
type Checker interface {
	// CheckOptions says in one sentence what is wrong; nil: nothing that can be known without the server.
	CheckOptions(o DumpOptions) error
}

// DumpWith dumps with options, or says that src has none.
func DumpWith(ctx context.Context, src Source, a Attempt, o DumpOptions) (Dump, error) {
	if o.IsZero() {
		return src.Dump(ctx, a)
	}
	if c, ok := src.(Chooser); ok {
		return c.DumpWith(ctx, a, o)
	}
	return nil, fmt.Errorf("dump with options: %T always dumps everything", src)
}

// RestoreChoices say how a backup is restored, and what of it. The zero value means all of it, into a new database.
type RestoreChoices struct {
	// InPlace restores into the target itself, which must exist, in one transaction; there is no undo. With Replace what
	// the backup holds replaces what has its names, and all else stays; without, the target must be empty. Owner, rights
	// and settings of the database itself stay as they are. Not for FormatPlain; of several streams not with Replace.
	InPlace bool `json:"in_place,omitempty"`

	// Disconnect ends the sessions of clients that a restore in place waits for. A new database needs no leave for that:
	// whoever is in the database that it replaces is disconnected by the swap.
	Disconnect bool `json:"disconnect,omitempty"`

	NoOwner         bool `json:"no_owner,omitempty"`          // everything belongs to the role that restores
	NoPrivileges    bool `json:"no_privileges,omitempty"`     // no rights are granted
	NoSubscriptions bool `json:"no_subscriptions,omitempty"`  // logical replication does not go on from the copy
	NoEventTriggers bool `json:"no_event_triggers,omitempty"` // not together with InPlace
	NoTablespaces   bool `json:"no_tablespaces,omitempty"`    // everything lies where the server puts it by default
	SchemaOnly      bool `json:"schema_only,omitempty"`       // no rows and no large objects

	// Jobs is how many sessions restore at the same time: streams of rows, if the backup has several, then indexes and
	// constraints. 0: as many as the backup has streams; at most MaxStreams. More than one is not for InPlace, which is one
	// transaction, nor for FormatPlain.
	Jobs int `json:"jobs,omitempty"`

	Schemas []string `json:"schemas,omitempty"` // only what is in these, by name; their rights are not restored
	// Tables restores only these tables, views and sequences, by name without schema. Their indexes, constraints and
	// triggers are not restored: it is for looking at rows, or for copying them elsewhere.
	Tables []string `json:"tables,omitempty"`
}

// IsZero tells whether nothing special is asked for.
func (c RestoreChoices) IsZero() bool { return reflect.ValueOf(c).IsZero() }

// Partial tells whether something of the backup is left out.
func (c RestoreChoices) Partial() bool { return c.SchemaOnly || len(c.Schemas)+len(c.Tables) > 0 }
