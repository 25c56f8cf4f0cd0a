package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
)

// BackupItem is the type of the items that completed backups are, and of the event that each of them has from the beginning:
// what comes after each backup has the trigger Types: backup, Past: backup, and Future: its own event.
const BackupItem = "backup"

// BackupData is the data of such an item; its id is that of the backup.
type BackupData struct {
	Backup   string `json:"backup"`
	Database string `json:"database"`
	Token    uint64 `json:"token"`
}

// BackupItems is an index in which each completed backup is an item: it is made when somebody asks for the first time after
// the backup has completed, whichever node asks, and goes when the backup is gone. So none is missed when a node dies.
type BackupItems struct {
	component.Items
	Ledger ledger.Ledger
}

// Query implements component.Index.
func (b BackupItems) Query(ctx context.Context, q component.Query) ([]component.Item, error) {
	if err := b.note(ctx); err != nil {
		return nil, fmt.Errorf("note backups as items: %w", err)
	}
	return b.Items.Query(ctx, q)
}

func (b BackupItems) note(ctx context.Context) error {
	entries, err := b.Ledger.Backups(ctx, ledger.BackupFilter{})
	if err != nil {
		return err
	}
	known, err := b.All(ctx, "", BackupItem)
	if err != nil {
		return err
	}
	noted := map[string]bool{}
	for _, it := range known {
		noted[it.ID] = true
	}
	var errs []error
	for _, e := range entries {
		switch {
		case e.State == ledger.BackupCompleted && !noted[e.ID]:
			errs = append(errs, b.put(ctx, e))
		case e.State == ledger.BackupGone && noted[e.ID]:
			errs = append(errs, b.Drop(ctx, e.ID))
		}
	}
	return errors.Join(errs...)
}

func (b BackupItems) put(ctx context.Context, e ledger.Backup) error {
	data, err := json.Marshal(BackupData{Backup: e.ID, Database: e.Database, Token: e.Token})
	if err != nil {
		return err
	}
	_, err = b.Put(ctx, component.Item{
		Type: BackupItem, ID: e.ID, ChangedAt: e.Completed, Data: data,
		Events: []component.Event{{Type: BackupItem, Start: e.Created, Success: true, Agent: BackupItem, Token: e.Token, Attempt: 1}},
	}, false)
	return err
}
