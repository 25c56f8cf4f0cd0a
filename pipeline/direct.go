package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// What lies in storages can be listed and restored without a ledger, a group and a worker: manifests say it all.

// Shelved are the whole, trusted backups in the named storages (all of the catalog when none is named), oldest first, as
// entries of a ledger would have them; and, as findings, what is wrong there. Nothing is changed.
func Shelved(ctx context.Context, c Catalog, names []string) ([]ledger.Backup, []Finding, error) {
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(c.Storages))
	}
	all := map[string]inventory{}
	for _, name := range names {
		st := c.Storages[name]
		if st == nil {
			return nil, nil, fmt.Errorf("storage %q is not configured: %w", name, ledger.ErrNotFound)
		}
		inv, err := c.inventory(ctx, st)
		if err != nil {
			return nil, nil, &storageError{name: name, err: err}
		}
		all[name] = inv
	}
	list := rebuilt(all, catalogued{})
	k := catalogued{entries: map[string]ledger.Backup{}}
	for _, b := range list {
		k.entries[b.ID] = b
	}
	var findings []Finding
	for _, name := range names {
		found := diagnose(name, all[name], k, time.Now())
		if storage.Keeps(ctx, c.Storages[name]) {
			found = keeping(found)
		}
		for _, f := range found {
			f.Fixable = false // what is at work cannot be known here
			findings = append(findings, f)
		}
	}
	return list, findings, nil
}

// DirectRestore says what RestoreDirect restores.
type DirectRestore struct {
	Backup   string
	Storages []string // configured names, in order of preference; none: all of the catalog
	Into     source.Source
	// Attempt names the new database and the sessions. Calls of one Task with a higher Token clean up what calls that were
	// killed have left.
	Attempt source.Attempt
	Options source.RestoreOptions
	Count   func(n int) // called with the number of stored bytes as they are read; may be nil
	// Record is called with what the swap will make, just before it: whoever keeps that can tell by source.Settle, after being
	// killed, whether it happened. Its error ends the restore. May be nil.
	Record func(source.Prepared) error
}

// RestoreDirect restores a backup straight from a storage, into a new database that is checked and then swapped in: as a
// restore task does, but for the record of it. Whoever calls it sees to it that no task does the same. When it fails, or
// ctx ends before the swap, nothing is left. One that was killed leaves the database that it was filling: the next call of
// the same Attempt.Task ends its sessions, which may live on, and drops it.
func RestoreDirect(ctx context.Context, c Catalog, r DirectRestore) (prepared source.Prepared, err error) {
	from, err := pick(ctx, c, r.Backup, r.Storages)
	if err != nil {
		return prepared, err
	}
	if err := c.opens(ctx, from); err != nil {
		return prepared, err
	}
	o := r.Options
	if o.Target == "" {
		o.Target = from.manifest.Source.Database
	}
	o.Info = from.manifest.Source
	if o.Info.Format == source.FormatPlain {
		o.Jobs = 0 // a script is run by one session
	}
	back := readback{processors: c.Processors, from: from, count: r.Count}
	return filled(ctx, r, o, func(into source.Restore) error {
		return back.all(ctx, o.Jobs, func(ctx context.Context, part string, raw io.Reader) error { return into.Read(ctx, part, raw) })
	})
}

// RestoreScript runs a plain dump that somebody else has made in a new database, checks that it came to its end, and gives the
// database the target's name. Nothing that is there is replaced, and psql does nothing but SQL, which has the rights of the
// role that into connects as. When it fails nothing is left; one that was killed is cleaned up after by the next call of the same Attempt.Task.
func RestoreScript(ctx context.Context, into source.Source, a source.Attempt, target string, script io.Reader) (source.Prepared, error) {
	r := DirectRestore{Into: into, Attempt: a}
	o := source.RestoreOptions{Target: target, Info: source.Info{Format: source.FormatPlain}}
	return filled(ctx, r, o, func(into source.Restore) error { return into.Read(ctx, source.PartData, script) })
}

// filled makes a new database, has it filled and checked, and swaps it in.
func filled(ctx context.Context, r DirectRestore, o source.RestoreOptions, fill func(source.Restore) error) (prepared source.Prepared, err error) {
	if _, err := r.Into.Settle(ctx, r.Attempt, source.Prepared{}); err != nil {
		return prepared, fmt.Errorf("clean up after earlier restores into %s: %w", o.Target, err)
	}
	into, err := r.Into.Restore(ctx, r.Attempt, o)
	if err != nil {
		return prepared, err
	}
	defer func() {
		if abortErr := into.Abort(); err != nil {
			err = errors.Join(err, abortErr)
		}
	}()
	if err := fill(into); err != nil {
		return prepared, err
	}
	if prepared, err = into.Check(ctx); err != nil {
		return prepared, fmt.Errorf("check the new database: %w", err)
	}
	if err := context.Cause(ctx); err != nil {
		return prepared, err
	}
	if r.Record != nil {
		if err := r.Record(prepared); err != nil {
			return prepared, err
		}
	}
	if err := into.Commit(context.WithoutCancel(ctx)); err != nil {
		return prepared, fmt.Errorf("swap the new database in: %w", err)
	}
	return prepared, nil
}

// Opens tells whether the beginning of a backup can be decrypted with the keys at hand: nil, or processor.ErrKey, or why the
// backup was not found. It reads a manifest and one header.
func Opens(ctx context.Context, c Catalog, backup string) error {
	from, err := pick(ctx, c, backup, nil)
	if err != nil {
		return err
	}
	return c.opens(ctx, from)
}

// ReadPart writes one part of a backup to w, as it was dumped. What w got counts only when the error is nil: that the part is
// whole, and what the manifest says, is known at its end. A backup without the part is ledger.ErrNotFound.
func ReadPart(ctx context.Context, c Catalog, backup, part string, w io.Writer) error {
	from, err := pick(ctx, c, backup, nil)
	if err != nil {
		return err
	}
	o, ok := from.manifest.object(part)
	switch g := from.manifest.Source.Globals; {
	case ok:
	case part == source.PartGlobals && g != nil && g.Lacking != "":
		return fmt.Errorf("backup %s has no %s (%s): %w", backup, part, g.Lacking, ledger.ErrNotFound)
	default:
		return fmt.Errorf("backup %s has no %s: %w", backup, part, ledger.ErrNotFound)
	}
	if err := c.opens(ctx, from); err != nil {
		return err
	}
	err = readback{processors: c.Processors, from: from}.part(ctx, o, func(_ context.Context, _ string, r io.Reader) error {
		_, err := io.Copy(w, r)
		return err
	})
	if err != nil {
		return fmt.Errorf("read %s of backup %s from storage %s: %w", part, backup, from.name, err)
	}
	return nil
}
