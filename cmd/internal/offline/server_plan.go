package offline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
)

// ServerPlan is the restore of a whole server: what is to be made of which backup, and how far that is. It is kept in a file.
type ServerPlan struct {
	Server string    `json:"server"`
	AsOf   time.Time `json:"as_of"`            // no backup is younger
	To     string    `json:"to"`               // address of the server that gets it
	System string    `json:"system,omitempty"` // what tells that one from others
	Made   time.Time `json:"made"`

	Globals     string     `json:"globals,omitempty"` // backup that the roles are of; empty: none, or not wanted
	GlobalsDone *time.Time `json:"globals_done,omitempty"`

	Databases []ServerDatabase `json:"databases"`
	Lacking   []ServerLacking  `json:"lacking"`

	Runner string `json:"runner,omitempty"` // who carries it out just now; see takeOver
}

// ServerDatabase is one database of the plan.
type ServerDatabase struct {
	Target      string    `json:"target"`   // its name on the server
	Database    string    `json:"database"` // configured name under which it was backed up
	Backup      string    `json:"backup"`
	AsOf        time.Time `json:"as_of"`
	RawBytes    int64     `json:"raw_bytes"`
	StoredBytes int64     `json:"stored_bytes"`
	Storages    []string  `json:"storages"` // that have it

	Attempt  uint64           `json:"attempt,omitempty"`  // token of the last try; 0: not begun
	Prepared *source.Prepared `json:"prepared,omitempty"` // what that try was about to swap in
	Done     *time.Time       `json:"done,omitempty"`
	Problem  string           `json:"problem,omitempty"` // why the last try failed
}

// ServerLacking is a database of the server of which nothing is restored.
type ServerLacking struct {
	Target string `json:"target"`
	Why    string `json:"why"`
}

// Left are the databases that are not done.
func (p ServerPlan) Left() (n int) {
	for _, d := range p.Databases {
		if d.Done == nil {
			n++
		}
	}
	return n
}

// planServer chooses for each database of a server its newest good backup that is not younger than asOf. A server is named as
// in the group's settings, or by one of the databases that are on it.
func planServer(list []ledger.Backup, server string, asOf time.Time) (ServerPlan, error) {
	p := ServerPlan{Server: server, AsOf: asOf, Databases: []ServerDatabase{}, Lacking: []ServerLacking{}}
	byTarget := map[string][]ledger.Backup{}
	for _, b := range ofServer(list, server) {
		byTarget[b.Info.Database] = append(byTarget[b.Info.Database], b)
	}
	if len(byTarget) == 0 {
		return p, &adviceError{fmt.Errorf("the storages hold no backup of a server or database named %q", server), "there are backups of: " + strings.Join(serversIn(list), ", ")}
	}
	var newest ledger.Backup
	for _, target := range slices.Sorted(maps.Keys(byTarget)) {
		b, why := newestBy(byTarget[target], asOf)
		if why == "" && target == maintenance {
			why = "it is the database in which others are made and renamed: restore it under another name (storage restore --as)"
		}
		if why != "" {
			p.Lacking = append(p.Lacking, ServerLacking{target, why})
			continue
		}
		p.Databases = append(p.Databases, planned(b))
	}
	for _, b := range ofServer(list, server) {
		if !b.AsOf.After(asOf) && b.AsOf.After(newest.AsOf) && hasGlobals(b) {
			newest = b
		}
	}
	p.Globals = newest.ID
	return p, nil
}

// maintenance is the database in which a source makes others.
const maintenance = "postgres"

// ofServer are the backups of a server: those named after it, and those of the same database system as the newest of these.
func ofServer(list []ledger.Backup, server string) (found []ledger.Backup) {
	named := func(b ledger.Backup) bool { return b.Database == server || strings.HasPrefix(b.Database, server+".") }
	system, at := "", time.Time{}
	for _, b := range list {
		if named(b) && b.Info.SystemID != "" && !b.AsOf.Before(at) {
			system, at = b.Info.SystemID, b.AsOf
		}
	}
	for _, b := range list {
		if named(b) || system != "" && b.Info.SystemID == system {
			found = append(found, b)
		}
	}
	return found
}

// serversIn are the names by which a server may be asked for.
func serversIn(list []ledger.Backup) []string {
	names := map[string]bool{}
	for _, b := range list {
		names[serverOf(b.Database)] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// newestBy is the newest good and complete backup by a time, or why there is none.
func newestBy(list []ledger.Backup, asOf time.Time) (best ledger.Backup, why string) {
	first, bad := time.Time{}, 0
	for _, b := range list {
		switch {
		case !b.Good():
			bad++
		case b.AsOf.After(asOf):
			if first.IsZero() || b.AsOf.Before(first) {
				first = b.AsOf
			}
		case best.ID == "" || cmp.Or(b.AsOf.Compare(best.AsOf), cmp.Compare(b.ID, best.ID)) > 0:
			best = b
		}
	}
	switch {
	case best.ID != "":
		return best, ""
	case !first.IsZero():
		return best, "its first backup is as of " + first.UTC().Format(time.RFC3339)
	}
	return best, fmt.Sprintf("none of its %d backups is a good one of the whole database", bad)
}

func hasGlobals(b ledger.Backup) bool {
	return b.State == ledger.BackupCompleted && b.Info.Globals != nil && b.Info.Globals.Lacking == ""
}

func planned(b ledger.Backup) ServerDatabase {
	d := ServerDatabase{Target: b.Info.Database, Database: b.Database, Backup: b.ID, AsOf: b.AsOf, RawBytes: b.RawBytes}
	for _, c := range b.Copies {
		d.StoredBytes = max(d.StoredBytes, c.Bytes)
		d.Storages = append(d.Storages, c.Storage)
	}
	return d
}
