package pipeline

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/processor/zstd"
)

// locked is a processor whose streams this node cannot open.
type locked struct{ processor.Processor }

func (locked) Unwrap(io.Reader) (io.ReadCloser, error) {
	return nil, fmt.Errorf("the object is encrypted to other keys: %w", processor.ErrKey)
}

// A wrong key is known before the server hears of the restore: not even a new database was made and dropped.
func TestAWrongKeyIsFoundBeforeAnythingIsPrepared(t *testing.T) {
	inRig(t, func(r *rig) {
		b := r.filled()
		task := r.restoreTask(b.Backup, nil)
		before := r.server.nextID
		r.start("n1", func(c *Config) {
			procs, err := processor.NewRegistry(locked{zstd.Default()})
			r.must(err)
			c.Catalog.Processors = procs
		}, nil)
		done := r.awaitState(task.ID, ledger.Failed)
		if !strings.Contains(done.Error, "open part data from storage one") || !strings.Contains(done.Error, processor.ErrKey.Error()) {
			r.Errorf("error: %s", done.Error)
		}
		r.server.mu.Lock()
		defer r.server.mu.Unlock()
		if r.server.nextID != before || r.server.commits != 0 {
			r.Errorf("%d databases were made", r.server.nextID-before)
		}
	})
}
