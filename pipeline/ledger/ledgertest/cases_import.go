package ledgertest

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// imports: a backup that was found is known once; what is known, in whatever state, is never changed by it.
func imports(b *bench) {
	asOf := time.Date(2026, 3, 29, 1, 30, 0, 0, time.UTC)
	entry := ledger.Backup{ID: "found", Database: "shop", State: ledger.BackupCompleted, Token: 17, AsOf: asOf, Created: asOf, Completed: asOf, RawBytes: 5,
		Copies: []ledger.Copy{{Storage: "one", State: ledger.CopyPresent, Bytes: 3}}, Mark: ledger.Mark{Pinned: true}}
	var made atomic.Int32
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			switch err := b.led.ImportBackup(b.ctx, entry); {
			case err == nil:
				made.Add(1)
			case !errors.Is(err, ledger.ErrExists):
				b.Errorf("import: %v", err)
			}
		})
	}
	wait.Wait()
	if made.Load() != 1 {
		b.Fatalf("imported %d times", made.Load())
	}
	got, err := b.led.Backup(b.ctx, "found")
	if b.must(err, "read"); got.Token != 17 || !got.AsOf.Equal(asOf) || !got.Created.Equal(asOf) || len(got.Copies) != 1 || got.Copies[0] != entry.Copies[0] || got.Mark != entry.Mark {
		b.Fatalf("entry: %+v", got)
	}
	list, err := b.led.Backups(b.ctx, ledger.BackupFilter{Database: "shop"})
	if b.must(err, "list"); len(list) != 1 {
		b.Fatalf("listed: %+v", list)
	}

	b.plan("t1")
	g, row := b.take("t1", "aa")
	b.must(b.write(g, row, ledger.Creating, ledger.BackupCreating), "begin")
	entry.ID = "bt1"
	b.want(b.led.ImportBackup(b.ctx, entry), ledger.ErrExists, "import what is being made")
	b.must(b.write(g, row, ledger.Failed, ledger.BackupGone), "give it up")
	b.want(b.led.ImportBackup(b.ctx, entry), ledger.ErrExists, "import what is gone")
	for _, bad := range []ledger.Backup{{}, {ID: "x", State: ledger.BackupCreating, Token: 1, Copies: entry.Copies}, {ID: "x", State: ledger.BackupCompleted, Token: 1}} {
		if err := b.led.ImportBackup(b.ctx, bad); err == nil || errors.Is(err, ledger.ErrExists) {
			b.Fatalf("import of %+v: %v", bad, err)
		}
	}
}
