package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// manifestTries is how often the put of a manifest is tried: its outcome may be unclear, and a whole dump hangs on it.
const manifestTries = 3

// create runs the create chain: dump, store, manifests, ledger. It returns nil only when the ledger says completed.
// keep outlives a cancel by a person: the last write is made under it.
func (a *attempt) create(ctx, keep context.Context) error {
	t := a.row()
	src, ok := a.cfg.Catalog.Sources[t.Database]
	if !ok {
		return fmt.Errorf("database %q is not configured on this node: %w", t.Database, ErrUnavailable)
	}
	copies, need, err := a.copies(t)
	if err != nil {
		return err
	}
	begun := &ledger.Backup{ID: t.Backup, Database: t.Database, State: ledger.BackupCreating, Token: a.guard.Token}
	if err := a.save(ctx, begun, func(t *ledger.Task) { t.State, t.Error, t.Hint = ledger.Creating, "", "" }); err != nil {
		return err
	}
	m, err := a.dump(ctx, src, copies, need)
	if err != nil {
		a.leaveNothingVoid(keep, copies)
		return err
	}
	if err := a.seal(ctx, m, copies, need); err != nil {
		return err
	}
	for _, c := range copies {
		if c.err != nil {
			a.log.WarnContext(ctx, "copy is missing", "storage", c.name, "err", c.err)
		}
	}
	entry := m.entry(copyRows(copies, m))
	a.suspect(ctx, entry)
	return a.save(keep, entry, func(t *ledger.Task) { t.State = ledger.Completed })
}

// suspect notes what is odd about a new backup. When the earlier ones cannot be read it is not held up for that.
func (a *attempt) suspect(ctx context.Context, entry *ledger.Backup) {
	earlier, err := a.cfg.Ledger.Backups(ctx, ledger.BackupFilter{Database: entry.Database, State: ledger.BackupCompleted, Limit: 4 * usualOf})
	if err != nil {
		a.log.WarnContext(ctx, "earlier backups not read", "err", err)
		return
	}
	for _, why := range Suspicions(*entry, earlier) {
		a.log.WarnContext(ctx, "backup is suspect", "backup", entry.ID, "why", why)
		entry.Suspect = append(entry.Suspect, why)
	}
}

// copies resolves the task's storages. One that this node does not know is a copy that fails at once.
func (a *attempt) copies(t ledger.Task) ([]*copyOf, int, error) {
	need, err := Needed(t.Require, len(t.Storages))
	if err != nil {
		return nil, 0, err
	}
	if need == 0 {
		return nil, 0, errors.New("no storage is chosen")
	}
	copies := make([]*copyOf, len(t.Storages))
	known := 0
	for i, name := range t.Storages {
		copies[i] = &copyOf{name: name, store: a.cfg.Catalog.Storages[name]}
		if copies[i].store == nil {
			copies[i].err = fmt.Errorf("storage %q is not configured on this node: %w", name, ErrUnavailable)
			err = copies[i].err
			continue
		}
		known++
	}
	if known < need {
		return nil, 0, err
	}
	return copies, need, nil
}

// dump streams every part of one consistent picture of the database and describes what was stored.
func (a *attempt) dump(ctx context.Context, src source.Source, copies []*copyOf, need int) (m Manifest, err error) {
	chain, err := a.cfg.Catalog.Processors.Chain(a.cfg.Catalog.Chain)
	if err != nil {
		return m, err
	}
	d, err := source.DumpWith(ctx, src, a.source(), a.row().Dump)
	if err != nil {
		return m, fmt.Errorf("start dump of %s: %w", a.row().Database, err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	a.estimate.Store(d.Info().EstimateBytes)
	u := &upload{
		dir: attemptDir(a.row().Backup, a.guard.Token), copies: copies, need: need, chain: chain,
		stall: a.cfg.StallAfter, watch: a.watchSize,
		onRaw:    func() error { return a.stage(ctx, ledger.Processing) },
		onStore:  func() error { return a.stage(ctx, ledger.Uploading) },
		countRaw: func(n int) { a.read.Add(int64(n)) },
		countOut: func(n int) { a.processed.Add(int64(n)) },
	}
	objects, err := a.dumpParts(ctx, d, u)
	if err != nil {
		return m, err
	}
	return a.manifest(d.Info(), objects, u), nil
}

// dumpParts streams every part; those of one stage at the same time. The objects are in the order of their restore.
func (a *attempt) dumpParts(ctx context.Context, d source.Dump, u *upload) ([]Object, error) {
	var mu sync.Mutex
	done := map[string]Object{}
	for _, stage := range writeStages(d.Parts()) {
		if a.cfg.RateLimit > 0 {
			u.rate = max(1, a.cfg.RateLimit/int64(len(stage)))
		}
		err := together(ctx, stage, 0, func(ctx context.Context, part string) error {
			o, err := a.dumpPart(ctx, d, u, part)
			mu.Lock()
			defer mu.Unlock()
			done[part] = o
			return err
		})
		if err == nil {
			err = u.enough()
		}
		if err != nil {
			return nil, err
		}
	}
	var objects []Object
	for _, stage := range source.Stages(d.Parts()) {
		for _, part := range stage {
			objects = append(objects, done[part])
		}
	}
	return objects, nil
}

func (a *attempt) dumpPart(ctx context.Context, d source.Dump, u *upload, part string) (Object, error) {
	if !partName.MatchString(part) || part == manifestName {
		return Object{}, fmt.Errorf("source has a part named %q", part)
	}
	about := ctx
	if source.IsStream(part) {
		about = storage.WithEstimate(ctx, d.Info().EstimateBytes)
	}
	o, err := u.part(about, part, func(ctx context.Context, w io.Writer) error { return d.Write(ctx, part, w) })
	if err == nil && o.RawBytes == 0 && part != source.PartGlobals {
		err = errEmpty
	}
	return o, err
}

func (a *attempt) manifest(info source.Info, objects []Object, u *upload) Manifest {
	names := make([]string, len(u.chain))
	for i, p := range u.chain {
		names[i] = p.Name()
	}
	return a.cfg.Signer.sign(Manifest{
		Format: manifestFormat, Backup: a.row().Backup, Token: a.guard.Token, Database: a.row().Database, Source: info,
		AsOf: info.AsOf, Created: a.cfg.Now().UTC(), Objects: objects, Processors: names, Kit: processor.KitID(u.chain), Writer: a.cfg.Writer,
	})
}

// seal makes the manifest in each storage that holds every part: the commit there. A tombstone in its place means that
// a successor is at work: ErrFenced, and what this attempt stored there is removed, being void.
func (a *attempt) seal(ctx context.Context, m Manifest, copies []*copyOf, need int) error {
	data, err := m.Encode()
	if err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	var whole []*copyOf
	for _, c := range copies {
		if c.err == nil {
			a.sealed[c.name] = true
			whole = append(whole, c)
		}
	}
	inTime(ctx, len(whole), need, a.cfg.StallAfter, func(ctx context.Context, i int) error {
		err := putManifest(ctx, whole[i].store, m, data)
		if err != nil {
			whole[i].err = &storageError{name: whole[i].name, err: err}
		}
		return err
	})
	made := 0
	var first, void error
	for _, c := range copies {
		if errors.Is(c.err, storage.ErrPermanent) {
			delete(a.sealed, c.name) // refused for good: there is none
		}
		switch {
		case errors.Is(c.err, ledger.ErrFenced):
			a.removeVoid(ctx, c)
			void = c.err
		case c.err == nil:
			made++
		case first == nil:
			first = c.err
		}
	}
	switch cause := context.Cause(ctx); {
	case void != nil:
		return fmt.Errorf("seal backup: %w", void)
	case made >= need:
		return nil
	case cause != nil:
		return cause
	}
	return fmt.Errorf("seal backup in %d of %d storages: %w", made, need, first)
}

// leaveNothingVoid removes what a dump that lost its right has stored where a successor has shut it out already: an owner that was
// paused may finish an object after the successor's clean-up. Without the tombstone the data is still the successor's to judge.
func (a *attempt) leaveNothingVoid(keep context.Context, copies []*copyOf) {
	if context.Cause(keep) == nil {
		return // the right stands: this node reverts the attempt itself
	}
	look, cancel := context.WithTimeout(context.WithoutCancel(keep), a.cfg.CleanupWithin)
	defer cancel()
	for _, c := range copies {
		if c.store == nil {
			continue
		}
		if there, err := readManifest(look, c.store, a.row().Backup, a.guard.Token); err == nil && there.Manifest.Void {
			a.removeVoid(keep, c)
		}
	}
}

// removeVoid removes this attempt's data from a storage in which its manifest is void.
func (a *attempt) removeVoid(ctx context.Context, c *copyOf) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.cfg.CleanupWithin)
	defer cancel()
	if err := removeData(ctx, c.store, a.row().Backup, a.guard.Token); err != nil {
		a.log.WarnContext(ctx, "void objects stay for the sweep", "storage", c.name, "err", err)
	}
}

// putManifest creates a manifest if there is none. One that is there already is either this very one (an earlier try
// whose answer was lost), or a tombstone: ErrFenced.
func putManifest(ctx context.Context, st storage.Storage, m Manifest, data []byte) error {
	var err error
	for try := range manifestTries {
		if try > 0 && pause(ctx, writeAgainMin<<try) != nil {
			break
		}
		_, err = st.Put(ctx, ManifestPath(m.Backup, m.Token), bytes.NewReader(data), storage.Condition{})
		if errors.Is(err, storage.ErrExists) {
			return sameManifest(ctx, st, m, data)
		}
		if err == nil || errors.Is(err, storage.ErrPermanent) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("put manifest: %w", err)
	}
	return nil
}

func sameManifest(ctx context.Context, st storage.Storage, m Manifest, data []byte) error {
	there, err := readManifest(ctx, st, m.Backup, m.Token)
	if err != nil {
		return err
	}
	if there.Manifest.Void {
		return fmt.Errorf("manifest is void (%s): %w", there.Manifest.Reason, ledger.ErrFenced)
	}
	if !bytes.Equal(there.Text, data) {
		return fmt.Errorf("%w: a manifest of this attempt that it did not write", storage.ErrExists)
	}
	return nil
}

// copyRows says in which storages the backup is.
func copyRows(copies []*copyOf, m Manifest) []ledger.Copy {
	rows := make([]ledger.Copy, len(copies))
	for i, c := range copies {
		rows[i] = ledger.Copy{Storage: c.name, State: "present", Bytes: m.StoredBytes()}
		if c.err != nil {
			rows[i] = ledger.Copy{Storage: c.name, State: "missing", Error: sentence(c.err)}
		}
	}
	slices.SortFunc(rows, func(a, b ledger.Copy) int { return strings.Compare(a.Storage, b.Storage) })
	return rows
}

// abandon removes what the attempt stored, after the ledger has said (state creating, guarded) that nothing of it will
// count: from then on no recoverer adopts it. It is repeated while a storage is away: without bound when manifests were
// begun, because a real one must not stay; else for CleanupWithin.
func (a *attempt) abandon(ctx context.Context, reason string) error {
	if len(a.sealed) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.cfg.CleanupWithin)
		defer cancel()
	}
	wait := writeAgainMin
	for {
		var err error
		for _, name := range a.row().Storages {
			if st := a.cfg.Catalog.Storages[name]; st != nil {
				err = errors.Join(err, a.abandonIn(ctx, name, st, reason))
			}
		}
		if err == nil {
			return nil
		}
		a.log.WarnContext(ctx, "partial objects not removed yet", "err", err)
		if pause(ctx, wait) != nil {
			return err
		}
		wait = min(2*wait, writeAgainMax)
	}
}

func (a *attempt) abandonIn(ctx context.Context, name string, st storage.Storage, reason string) error {
	if a.sealed[name] {
		if err := voidManifest(ctx, st, a.cfg.Signer.sign(Tombstone(a.row().Backup, a.guard.Token, reason, a.cfg.Now().UTC()))); err != nil {
			return err
		}
	}
	return removeData(ctx, st, a.row().Backup, a.guard.Token)
}

// elapsed tells whether a deadline, if there is one, has passed.
func elapsed(deadline, now time.Time) bool { return !deadline.IsZero() && now.After(deadline) }
