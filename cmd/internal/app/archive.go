package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// archiveTo keeps ended tasks that the embedded ledger has no room for: one object of JSON lines in each storage, named
// after the first and the last of them. One storage that takes it is enough.
func archiveTo(storages map[string]storage.Storage) func(context.Context, []ledger.Task) error {
	return func(ctx context.Context, ended []ledger.Task) error {
		if len(ended) == 0 {
			return nil
		}
		if len(storages) == 0 {
			return errors.New("no storage is configured")
		}
		var lines bytes.Buffer
		for _, t := range ended {
			line, err := json.Marshal(t)
			if err != nil {
				return fmt.Errorf("encode task %s: %w", t.ID, err)
			}
			lines.Write(append(line, '\n'))
		}
		name := pipeline.HistoryPath(ended[0].ID, ended[len(ended)-1].ID)
		var errs []error
		for at, st := range storages {
			_, err := st.Put(ctx, name, bytes.NewReader(lines.Bytes()), storage.Condition{})
			if err != nil && !errors.Is(err, storage.ErrExists) { // an earlier try, or another node's
				errs = append(errs, fmt.Errorf("storage %s: %w", at, err))
			}
		}
		if len(errs) < len(storages) {
			return nil
		}
		return errors.Join(errs...)
	}
}
