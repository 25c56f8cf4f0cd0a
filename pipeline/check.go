package pipeline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// What a check of a storage finds.
const (
	FoundPartial   = "partial"    // objects of an attempt that was never committed here
	FoundUnknown   = "unknown"    // a whole backup of which the ledger knows nothing
	FoundStray     = "stray"      // an object that is none of this program's
	FoundMissing   = "missing"    // the ledger, or a manifest, says that it is here, and it is not
	FoundSize      = "wrong size" // an object that is not as long as its manifest says
	FoundTombstone = "tombstone"  // an attempt that can never be committed here
	FoundKept      = "kept"       // partial, or of a test, in a storage from which nothing can be removed: no fault
	FoundForeign   = "foreign"    // a manifest that this group has not made
	FoundBroken    = "broken"     // a manifest that cannot be read
)

// Finding is one thing that a check found.
type Finding struct {
	Storage string
	Kind    string // FoundPartial, …
	Backup  string // empty for a stray
	Token   uint64
	Object  string // its name in the storage; empty when the whole attempt is meant
	Problem string // one sentence
	Fixable bool   // a fix removes it; everything else is for a person
	Fixed   bool
}

// found is what lies in a storage under one token of a backup.
type found struct {
	parts    map[string]int64 // sizes, the manifest's aside
	manifest *Manifest
	broken   error // why there is a manifest that cannot be read
	foreign  error // why it is not trusted
}

// inventory is all that lies in a storage: attempts by backup and token, and names that are none of ours.
type inventory struct {
	attempts map[string]map[uint64]*found
	strays   []string
}

// catalogued is what the ledger knows, read after the inventory was made. So whatever has its attempt's row, which is written
// before its first byte, is in active or in entries.
type catalogued struct {
	entries map[string]ledger.Backup
	active  []ledger.Task
}

// busy tells whether a task is at work on the backup.
func (k catalogued) busy(backup string) bool {
	return slices.ContainsFunc(k.active, func(t ledger.Task) bool { return t.Backup == backup })
}

// diagnose compares what lies in a storage with what is known. It is pure. What a task is at work on is passed over.
func diagnose(where string, inv inventory, k catalogued, now time.Time) []Finding {
	var out []Finding
	add := func(f Finding) { f.Storage = where; out = append(out, f) }
	for _, name := range inv.strays {
		problem := "no object of this program has such a name"
		if probed(name) {
			problem = "a test of the storage has left it; it may be removed"
		}
		add(Finding{Kind: FoundStray, Object: name, Problem: problem})
	}
	for _, backup := range slices.Sorted(maps.Keys(inv.attempts)) {
		if k.busy(backup) {
			continue
		}
		for _, token := range slices.Sorted(maps.Keys(inv.attempts[backup])) {
			f := inv.attempts[backup][token]
			entry, ok := k.entries[backup]
			for _, one := range f.diagnose(backup, token, entry, ok, now) {
				one.Backup, one.Token = backup, token
				add(one)
			}
		}
	}
	for _, backup := range slices.Sorted(maps.Keys(k.entries)) {
		b := k.entries[backup]
		if f := inv.attempts[backup][b.Token]; f != nil && (f.manifest != nil || f.broken != nil) || k.busy(backup) || !hasCopy(b, where) {
			continue
		}
		add(Finding{Kind: FoundMissing, Backup: backup, Token: b.Token, Object: ManifestPath(backup, b.Token),
			Problem: "the ledger says that a copy is here, and there is no manifest"})
	}
	return out
}

// hasCopy tells whether the ledger says that a copy is in the storage.
func hasCopy(b ledger.Backup, where string) bool {
	return b.State == ledger.BackupCompleted && slices.ContainsFunc(b.Copies, func(c ledger.Copy) bool {
		return c.Storage == where && c.State == ledger.CopyPresent
	})
}

// diagnose looks at one attempt. Only what no manifest and no entry counts is fixable.
func (f *found) diagnose(backup string, token uint64, entry ledger.Backup, ok bool, now time.Time) []Finding {
	counts := ok && entry.Token == token && entry.State == ledger.BackupCompleted
	switch {
	case f.broken != nil:
		return []Finding{{Kind: FoundBroken, Object: ManifestPath(backup, token), Problem: sentence(f.broken)}}
	case f.manifest == nil && counts:
		return nil // said as missing, or its copy is
	case f.manifest == nil:
		return []Finding{{Kind: FoundPartial, Fixable: true, Problem: fmt.Sprintf("%d objects, %d bytes, of an attempt that was never committed", len(f.parts), f.bytes())}}
	case f.manifest.Void && len(f.parts) > 0:
		return []Finding{{Kind: FoundPartial, Fixable: true, Problem: fmt.Sprintf("%d objects, %d bytes, of an attempt that is void (%s)", len(f.parts), f.bytes(), f.manifest.Reason)}}
	case f.manifest.Void:
		age := now.Sub(f.manifest.Created)
		return []Finding{{Kind: FoundTombstone, Fixable: age > tombstoneFor, Problem: fmt.Sprintf("void since %s: %s", f.manifest.Created.Format(time.RFC3339), f.manifest.Reason)}}
	}
	out := f.objects(backup, token)
	switch {
	case f.foreign != nil:
		out = append(out, Finding{Kind: FoundForeign, Object: ManifestPath(backup, token), Problem: sentence(f.foreign)})
	case !ok && len(out) == 0:
		out = append(out, Finding{Kind: FoundUnknown, Problem: fmt.Sprintf("a whole backup of %s, as of %s, that the ledger does not know", f.manifest.Database, f.manifest.AsOf.Format(time.RFC3339))})
	}
	return out
}

// objects compares the objects of a whole manifest.
func (f *found) objects(backup string, token uint64) []Finding {
	var out []Finding
	for _, o := range f.manifest.Objects {
		size, ok := f.parts[o.Name]
		switch name := ObjectPath(backup, token, o.Name); {
		case !ok:
			out = append(out, Finding{Kind: FoundMissing, Object: name, Problem: "the manifest names it, and it is not there"})
		case size != o.StoredBytes:
			out = append(out, Finding{Kind: FoundSize, Object: name, Problem: fmt.Sprintf("it has %d bytes, the manifest says %d", size, o.StoredBytes)})
		}
	}
	for _, part := range slices.Sorted(maps.Keys(f.parts)) {
		if _, ok := f.manifest.object(part); !ok {
			out = append(out, Finding{Kind: FoundPartial, Object: ObjectPath(backup, token, part), Problem: "its manifest does not name it"})
		}
	}
	return out
}

func (f *found) bytes() (n int64) {
	for _, size := range f.parts {
		n += size
	}
	return n
}

// rebuilt are the entries of whole backups that lie in storages, by the highest token of each. It is pure. A backup that the
// ledger knows, in whatever state, or that a task is at work on, is none.
func rebuilt(storages map[string]inventory, k catalogued) []ledger.Backup {
	best := map[string]ledger.Backup{}
	for _, name := range slices.Sorted(maps.Keys(storages)) {
		for backup, attempts := range storages[name].attempts {
			if _, ok := k.entries[backup]; ok || k.busy(backup) {
				continue
			}
			for token, f := range attempts {
				if f.manifest == nil || f.manifest.Void || f.foreign != nil || len(f.objects(backup, token)) > 0 {
					continue
				}
				row := ledger.Copy{Storage: name, State: ledger.CopyPresent, Bytes: f.manifest.StoredBytes()}
				b, ok := best[backup]
				switch {
				case !ok || token > b.Token:
					b = *f.manifest.entry([]ledger.Copy{row})
					b.Created, b.Completed = f.manifest.Created, f.manifest.Created
				case token == b.Token:
					b.Copies = append(b.Copies, row)
				}
				best[backup] = b
			}
		}
	}
	return slices.SortedFunc(maps.Values(best), func(a, b ledger.Backup) int { return cmp.Or(a.AsOf.Compare(b.AsOf), cmp.Compare(a.ID, b.ID)) })
}

// keeping is what findings are in a storage from which nothing can be removed: what a fix would remove stays, and is no fault.
func keeping(findings []Finding) []Finding {
	for i, f := range findings {
		if f.Fixable && f.Kind == FoundPartial || f.Kind == FoundStray && probed(f.Object) {
			findings[i].Kind = FoundKept
		}
		findings[i].Fixable = false
	}
	return findings
}

// probed tells whether an object was written by a test of the storage.
func probed(name string) bool { return strings.HasPrefix(name, storage.ProbePrefix) }
