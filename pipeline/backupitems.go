package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
)

// Types of what is known of backups as items.
const (
	// BackupItem is the type of the items that completed backups are, and of the event that each of them has from the
	// beginning: what comes after each backup has the trigger Types: backup, Past: backup, and Future: its own event.
	BackupItem = "backup"
	// VerifyEvent is the type of the event that each verification of a backup leaves on its item, which has changed with it:
	// it succeeded when every copy that was asked about is whole, else the details say what is wrong. What comes after each
	// good one has the trigger Past: verify, and Old: its own event; after each bad one PastFailed: verify.
	VerifyEvent = "verify"
)

// verifications bounds how many of the newest verify tasks are looked at for their events.
const verifications = 1000

// BackupData is the data of such an item; its id is that of the backup.
type BackupData struct {
	Backup   string `json:"backup"`
	Database string `json:"database"`
	Token    uint64 `json:"token"`
}

// BackupItems is an index in which each completed backup is an item: it is made when somebody asks for the first time after
// the backup has completed, whichever node asks, and goes when the backup is gone; events of verifications come in the same
// way. So none is missed when a node dies. Of verifications that nobody asked between, only the last is an event.
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
	noted := map[string]component.Item{}
	for _, it := range known {
		noted[it.ID] = it
	}
	var errs []error
	for _, e := range entries {
		_, ok := noted[e.ID]
		switch {
		case e.State == ledger.BackupCompleted && !ok:
			it, err := b.put(ctx, e)
			if err == nil {
				noted[e.ID] = it
			}
			errs = append(errs, err)
		case e.State == ledger.BackupGone && ok:
			errs = append(errs, b.Drop(ctx, e.ID))
			delete(noted, e.ID)
		}
	}
	return errors.Join(append(errs, b.verified(ctx, noted))...)
}

func (b BackupItems) put(ctx context.Context, e ledger.Backup) (component.Item, error) {
	data, err := json.Marshal(BackupData{Backup: e.ID, Database: e.Database, Token: e.Token})
	if err != nil {
		return component.Item{}, err
	}
	return b.Put(ctx, component.Item{
		Type: BackupItem, ID: e.ID, ChangedAt: e.Completed, Data: data,
		Events: []component.Event{{Type: BackupItem, Start: e.Created, Success: true, Agent: BackupItem, Token: e.Token, Attempt: 1}},
	}, false)
}

// verified notes the last verification of each item that has one.
func (b BackupItems) verified(ctx context.Context, items map[string]component.Item) error {
	tasks, err := b.Ledger.Tasks(ctx, ledger.TaskFilter{Type: ledger.Verify, Limit: verifications})
	if err != nil {
		return err
	}
	var errs []error
	for _, t := range tasks { // newest first
		it, ok := items[t.Backup]
		e, ended := verification(t)
		if !ok || !ended {
			continue
		}
		delete(items, t.Backup)
		if last, ok := it.Newest(VerifyEvent); !ok || e.Start.After(last.Start) {
			_, err := b.Put(ctx, component.Item{Type: BackupItem, ID: it.ID, ChangedAt: t.Finished, Events: []component.Event{e}}, true)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// verification is the event of a verify task that has come to a result.
func verification(t ledger.Task) (e component.Event, ended bool) {
	if t.Begun.IsZero() || t.State != ledger.Completed && t.State != ledger.Failed {
		return e, false
	}
	var wrong component.Report
	if t.State == ledger.Failed {
		wrong.Fail(component.Failure{Item: t.Backup, Type: VerifyEvent, Text: t.Error})
	}
	return component.Event{
		Type: VerifyEvent, Start: t.Begun, Success: t.State == ledger.Completed, Agent: VerifyEvent + "@" + t.Node,
		Details: wrong.Details(), Token: t.Token, Attempt: t.Attempt,
	}, true
}
