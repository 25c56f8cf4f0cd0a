package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// replicate runs a replicate task: it brings the copies in the task's storages to what a whole copy elsewhere is, byte by
// byte as it is stored there, so that it needs no key. The manifest comes last, as ever. What is there already is read and
// kept when it is right. Objects lie under the token of the attempt that made them: nothing else is ever written there, and
// nothing is replaced but by its version.
func (a *attempt) replicate(ctx, keep context.Context) error {
	t := a.row()
	if err := a.save(ctx, nil, func(t *ledger.Task) { t.State, t.Error, t.Hint = ledger.Downloading, "", "" }); err != nil {
		return err
	}
	entry, err := a.cfg.Ledger.Backup(ctx, t.Backup)
	if err != nil {
		return fmt.Errorf("read backup %s: %w", t.Backup, err)
	}
	from, raw, err := a.wholeCopy(ctx, entry)
	if err != nil {
		return err
	}
	a.estimate.Store(from.manifest.StoredBytes() * int64(len(t.Storages)))
	next := entry
	next.Copies = slices.Clone(entry.Copies)
	var errs []error
	for _, name := range t.Storages {
		err := a.copyInto(ctx, from, raw, name)
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		row := ledger.Copy{Storage: name, State: ledger.CopyPresent, Bytes: from.manifest.StoredBytes()}
		i := slices.IndexFunc(next.Copies, func(c ledger.Copy) bool { return c.Storage == name })
		switch {
		case err != nil:
			errs = append(errs, &storageError{name: name, err: err})
		case i < 0:
			next.Copies = append(next.Copies, row)
		default:
			next.Copies[i] = row
		}
	}
	if err := errors.Join(errs...); err != nil {
		if saveErr := a.save(ctx, &next, func(t *ledger.Task) { t.Error = sentence(err) }); saveErr != nil {
			return saveErr
		}
		return err
	}
	return a.save(keep, &next, func(t *ledger.Task) { t.State = ledger.Completed })
}

// wholeCopy finds a copy to read from: its manifest, and that as the bytes that it is.
func (a *attempt) wholeCopy(ctx context.Context, entry ledger.Backup) (picked, []byte, error) {
	var errs []error
	for _, c := range entry.Copies {
		st := a.cfg.Catalog.Storages[c.Storage]
		if c.State != ledger.CopyPresent || st == nil || slices.Contains(a.row().Storages, c.Storage) {
			continue
		}
		raw, err := readAll(ctx, st, ManifestPath(entry.ID, entry.Token))
		if err != nil {
			errs = append(errs, &storageError{name: c.Storage, err: err})
			continue
		}
		m, err := DecodeManifest(bytes.NewReader(raw))
		if err == nil && (m.Void || m.Backup != entry.ID || m.Token != entry.Token) {
			err = fmt.Errorf("%w: it is void, or of another backup", errCorrupt)
		}
		if err == nil {
			err = a.cfg.Catalog.trusts(ctx, m)
		}
		if err == nil {
			return picked{name: c.Storage, store: st, manifest: m}, raw, nil
		}
		errs = append(errs, &storageError{name: c.Storage, err: err})
	}
	if len(errs) == 0 {
		return picked{}, nil, fmt.Errorf("copy backup %s: %w", entry.ID, ErrNoCopy)
	}
	return picked{}, nil, fmt.Errorf("copy backup %s: %w", entry.ID, errors.Join(errs...))
}

func readAll(ctx context.Context, st storage.Storage, name string) ([]byte, error) {
	obj, _, err := st.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(obj, MaxManifest+1))
	return raw, errors.Join(err, obj.Close())
}

// copyInto makes one copy whole.
func (a *attempt) copyInto(ctx context.Context, from picked, manifest []byte, name string) error {
	to := a.cfg.Catalog.Storages[name]
	if to == nil {
		return fmt.Errorf("storage %q is not configured on this node: %w", name, ErrUnavailable)
	}
	for _, o := range from.manifest.Objects {
		if err := a.copyObject(ctx, from, to, o); err != nil {
			return fmt.Errorf("copy part %s: %w", o.Name, err)
		}
	}
	path := ManifestPath(from.manifest.Backup, from.manifest.Token)
	return putExactly(ctx, to, path, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(manifest)), nil },
		func(there io.Reader) error {
			got, err := io.ReadAll(io.LimitReader(there, MaxManifest+1))
			if err == nil && !bytes.Equal(got, manifest) {
				err = errCorrupt // a tombstone, or a damaged one
			}
			return err
		})
}

// copyObject copies one stored object. The reader fails before its end when the source's is not what the manifest says.
func (a *attempt) copyObject(ctx context.Context, from picked, to storage.Storage, o Object) error {
	path := ObjectPath(from.manifest.Backup, from.manifest.Token, o.Name)
	open := func() (io.ReadCloser, error) {
		obj, _, err := from.store.Get(ctx, path)
		if err != nil {
			return nil, &storageError{name: from.name, err: err}
		}
		count := func(n int) { a.read.Add(int64(n)) }
		return reading{newChecked(obj, "stored object", o.StoredBytes, o.StoredSHA256, nil, count), obj}, nil
	}
	return putExactly(ctx, to, path, open, func(there io.Reader) error {
		return newChecked(there, "stored object", o.StoredBytes, o.StoredSHA256, nil, nil).finish()
	})
}

type reading struct {
	io.Reader
	io.Closer
}

// putExactly makes an object be what open yields: created when there is none, kept when same finds nothing wrong with the
// one that is there, and else replaced, by its version.
func putExactly(ctx context.Context, to storage.Storage, path string, open func() (io.ReadCloser, error), same func(io.Reader) error) error {
	c := storage.Condition{}
	for {
		err := putFrom(ctx, to, path, open, c)
		if !errors.Is(err, storage.ErrExists) && !errors.Is(err, storage.ErrStale) {
			return err
		}
		there, info, err := to.Get(ctx, path)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			c = storage.Condition{}
			continue
		case err != nil:
			return err
		}
		err = errors.Join(same(there), there.Close())
		if !errors.Is(err, errCorrupt) {
			return err
		}
		c = storage.Condition{Version: info.Version}
	}
}

func putFrom(ctx context.Context, to storage.Storage, path string, open func() (io.ReadCloser, error), c storage.Condition) (err error) {
	if c == (storage.Condition{}) {
		if _, err := to.Stat(ctx, path); err == nil {
			return storage.ErrExists // nothing is sent that would be refused
		}
	}
	r, err := open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	stop := context.AfterFunc(ctx, func() { r.Close() }) // a read that hangs ends with the task
	defer stop()
	_, err = to.Put(ctx, path, r, c)
	return err
}
