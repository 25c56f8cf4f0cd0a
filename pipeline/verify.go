package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// States of a copy after it was read back; the first two are also those of ledger.Copy.
const (
	CopyPresent = "present" // every byte is there, and is what the manifest says
	CopyMissing = "missing" // no manifest, or an object of it is not there
	CopyCorrupt = "corrupt" // it is there and is not what the manifest says
	CopyUnknown = "unknown" // the storage could not be read, or the key is wrong: nothing was learned
)

// VerifyRequest says what Verify reads back.
type VerifyRequest struct {
	Backup   string
	Storages []string // configured names; none: all of the catalog. Each is read on its own.
	// Scratch is a source on a server that is used for nothing else; the backup is restored into a database there that is
	// dropped again. Nil: only bytes are compared.
	Scratch source.Source
	Attempt source.Attempt // names the database and the sessions in Scratch; required with it
	Count   func(n int)    // called with the number of stored bytes as they are read; may be nil
}

// CopyVerdict is what became of one copy.
type CopyVerdict struct {
	Storage string
	State   string // CopyPresent, …
	Token   uint64 // of the manifest that was found; 0: none
	Bytes   int64  // stored bytes that the manifest names
	Err     error  // why it is not present; nil for one that is
}

// Verified is what Verify found.
type Verified struct {
	Copies   []CopyVerdict // in the order of the request
	Restored bool          // one good copy was restored into Scratch, and held what the manifest counts
}

// Good tells whether every copy is present.
func (v Verified) Good() bool {
	return len(v.Copies) > 0 && !slices.ContainsFunc(v.Copies, func(c CopyVerdict) bool { return c.State != CopyPresent })
}

// Errors of Verify that a caller branches on.
var (
	// ErrNoCopy: no copy of the backup is good; Verified says what is wrong with each.
	ErrNoCopy = errors.New("no copy of the backup is whole")
	// ErrScratchIsSource: the scratch server is one that backups are made of. Nothing was done on it.
	ErrScratchIsSource = errors.New("the scratch server is one that backups are made of")
	// ErrScratchUnfit: the scratch server cannot take the backup (an extension, a locale, room, or the server itself is
	// missing). That says nothing about the backup.
	ErrScratchUnfit = errors.New("the scratch server cannot take the backup")
)

// Verify reads every object of a backup back out of each storage, through the inverse processors, and compares lengths and
// hashes with the manifest; with Scratch the first good copy is restored, counted and dropped again. It changes nothing
// else and writes no ledger: whoever runs the task writes down what it returns. Verified is filled as far as it came also
// when there is an error. The end of ctx ends it, with ctx's cause.
func Verify(ctx context.Context, c Catalog, r VerifyRequest) (Verified, error) {
	var v Verified
	if r.Scratch != nil {
		if err := scratchFits(ctx, c, r.Scratch); err != nil {
			return v, err
		}
	}
	names := r.Storages
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(c.Storages))
	}
	var good picked
	for _, name := range names {
		from, verdict := verifyCopy(ctx, c, r, name)
		if err := context.Cause(ctx); err != nil {
			return v, err
		}
		v.Copies = append(v.Copies, verdict)
		if good.store == nil && verdict.State == CopyPresent {
			good = from
		}
	}
	if good.store == nil {
		var errs []error
		for _, one := range v.Copies {
			errs = append(errs, one.Err)
		}
		return v, fmt.Errorf("verify backup %s: %w: %w", r.Backup, ErrNoCopy, errors.Join(errs...))
	}
	if r.Scratch == nil {
		return v, nil
	}
	if err := restoreIntoScratch(ctx, c, r, good); err != nil {
		return v, err
	}
	v.Restored = true
	return v, nil
}

// verifyCopy reads one copy back.
func verifyCopy(ctx context.Context, c Catalog, r VerifyRequest, name string) (picked, CopyVerdict) {
	verdict := CopyVerdict{Storage: name}
	from, err := pick(ctx, c, r.Backup, []string{name})
	if err == nil {
		verdict.Token, verdict.Bytes = from.manifest.Token, from.manifest.StoredBytes()
		back := readback{processors: c.Processors, from: from, count: r.Count, diagnose: true}
		err = back.all(ctx, 1, func(_ context.Context, _ string, raw io.Reader) error {
			_, err := io.Copy(io.Discard, raw)
			return err
		})
	}
	verdict.State, verdict.Err = copyState(err), err
	return from, verdict
}

// copyState says what an error of a reading tells about the copy. Only what is certain counts as damage.
func copyState(err error) string {
	switch {
	case err == nil:
		return CopyPresent
	case errors.Is(err, errCorrupt):
		return CopyCorrupt
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, ledger.ErrNotFound):
		return CopyMissing
	}
	return CopyUnknown
}

// scratchFits refuses a scratch server that is one of the sources, by the identity of the server and not by its name.
func scratchFits(ctx context.Context, c Catalog, scratch source.Source) error {
	mine, err := identity(ctx, scratch)
	if err != nil {
		return fmt.Errorf("look at the scratch server: %w", err)
	}
	if mine == "" {
		return fmt.Errorf("%w, or may be one: it does not say which server it is", ErrScratchIsSource)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Sources)) {
		switch other, err := identity(ctx, c.Sources[name]); {
		case err != nil:
			continue // one that is away cannot be told apart by this; its backups' manifests can
		case other == mine:
			return fmt.Errorf("%w: it holds database %q", ErrScratchIsSource, name)
		}
	}
	return nil
}

func identity(ctx context.Context, src source.Source) (string, error) {
	i, ok := src.(source.Identifier)
	if !ok {
		return "", nil
	}
	return i.Identity(ctx)
}

// restoreIntoScratch fills a database in the scratch server, checks it, and drops it.
func restoreIntoScratch(ctx context.Context, c Catalog, r VerifyRequest, from picked) (err error) {
	mine, err := identity(ctx, r.Scratch)
	if err != nil {
		return fmt.Errorf("look at the scratch server: %w", err)
	}
	if mine == from.manifest.Source.SystemID {
		return fmt.Errorf("%w: backup %s is of it", ErrScratchIsSource, r.Backup)
	}
	if _, err := r.Scratch.Settle(ctx, r.Attempt, source.Prepared{}); err != nil {
		return fmt.Errorf("clear the scratch server: %w", err)
	}
	choices := source.RestoreChoices{NoEventTriggers: true}
	if from.manifest.Source.Format != source.FormatPlain { // roles and tablespaces are not part of a backup, and nothing may go on from a copy
		choices.NoOwner, choices.NoPrivileges, choices.NoSubscriptions, choices.NoTablespaces = true, true, true, true
	}
	into, err := r.Scratch.Restore(ctx, r.Attempt, source.RestoreOptions{
		Target: scratchTarget, Names: true, Info: from.manifest.Source, RestoreChoices: choices,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrScratchUnfit, err)
	}
	defer func() { err = errors.Join(err, into.Abort()) }()
	if err := (readback{processors: c.Processors, from: from, count: r.Count}).all(ctx, 0, into.Read); err != nil {
		return err
	}
	if _, err := into.Check(ctx); err != nil {
		return fmt.Errorf("compare the scratch database with backup %s: %w", r.Backup, err)
	}
	return nil
}

// scratchTarget is the name that a database of a verification would get; it is never committed.
const scratchTarget = "fencepost_verify"
