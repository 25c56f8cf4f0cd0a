package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"

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
			return fmt.Errorf("open part %s from storage %s: %w", first.Name, from.name, err)
		}
		return nil // whatever else it is, the restore itself says it better
	}
	return r.Close()
}
