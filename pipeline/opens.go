package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/processor"
)

// opens looks whether the beginning of a backup can be read with the keys of this node, before anything is prepared for
// its content: a wrong key must not cost a database that is made and dropped again. It reads one header, if the
// processors have one.
func (c Catalog) opens(ctx context.Context, from picked) (err error) {
	if len(from.manifest.Objects) == 0 {
		return nil
	}
	first := from.manifest.Objects[0]
	obj, _, err := from.store.Get(ctx, ObjectPath(from.manifest.Backup, from.manifest.Token, first.Name))
	if err != nil {
		return &storageError{name: from.name, err: err}
	}
	defer func() { err = errors.Join(err, obj.Close()) }()
	stop := context.AfterFunc(ctx, func() { obj.Close() }) // a read that hangs ends with the task
	defer stop()
	var r io.ReadCloser
	if r, err = c.Processors.UnwrapAll(from.manifest.Processors, obj); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if errors.Is(err, processor.ErrKey) {
			if kit := from.manifest.Kit; kit != "" {
				err = fmt.Errorf("the kit %s is wanted: %w", kit, err)
			}
			return fmt.Errorf("open part %s from storage %s: %w", first.Name, from.name, err)
		}
		return nil // whatever else it is, the restore itself says it better
	}
	return r.Close()
}

// Closed are backups of a database that the keys at hand do not open, all of one kit.
type Closed struct {
	Database string `json:"database"`
	Kit      string `json:"kit,omitempty"` // empty: the manifests name none
	Backups  int    `json:"backups"`
	Newest   string `json:"newest"` // id
}

// ClosedOf sorts out which of the backups (oldest first, as Shelved has them) the keys at hand do not open. It reads every
// manifest, and one header for each database and kit; of backups that are encrypted and name no kit, every header.
func ClosedOf(ctx context.Context, c Catalog, list []ledger.Backup) (out []Closed, err error) {
	type kind struct{ database, kit, one string }
	count, newest := map[kind]int{}, map[kind]picked{}
	for _, b := range list {
		from, err := pick(ctx, c, b.ID, nil)
		if err != nil {
			return nil, err
		}
		k := kind{database: b.Database, kit: from.manifest.Kit}
		if k.kit == "" && c.keyed(from.manifest.Processors) {
			k.one = b.ID
		}
		count[k]++
		newest[k] = from
	}
	for k, from := range newest {
		switch err := c.opens(ctx, from); {
		case errors.Is(err, processor.ErrKey):
			out = append(out, Closed{Database: k.database, Kit: k.kit, Backups: count[k], Newest: from.manifest.Backup})
		case err != nil:
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b Closed) int {
		return cmp.Or(cmp.Compare(a.Database, b.Database), cmp.Compare(a.Newest, b.Newest))
	})
	return out, nil
}

// keyed tells whether one of the processors needs a key.
func (c Catalog) keyed(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, ok := c.Processors[name].(processor.Keyed)
		return ok
	})
}
