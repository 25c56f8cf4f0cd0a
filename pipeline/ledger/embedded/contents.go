package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
)

// fillAtOnce bounds what one transaction of Fill or Clear carries: keys, and bytes of their values.
const (
	fillAtOnce = 64
	fillBytes  = 128 << 10
)

// prefixes are those of all rows.
var prefixes = []string{taskPrefix, backupPrefix, cancelPrefix, gatePrefix, errorPrefix, logPrefix, itemPrefix}

// Contents reads all that the ledger holds. Nobody works with it meanwhile, or they are of no single moment.
func (l *Ledger) Contents(ctx context.Context) (ledger.Contents, error) {
	c := ledger.Contents{Logs: map[string]ledger.Log{}}
	var err error
	if c.Tasks, err = l.Tasks(ctx, ledger.TaskFilter{}); err != nil {
		return c, err
	}
	if c.Backups, err = list[ledger.Backup](ctx, l.store, backupPrefix); err != nil {
		return c, err
	}
	for _, t := range c.Tasks {
		kept, version, err := l.log(ctx, t.ID)
		if err != nil {
			return c, err
		}
		if version != 0 {
			c.Logs[t.ID] = kept
		}
	}
	if c.Errors, err = list[ledger.TaskError](ctx, l.store, errorPrefix); err != nil {
		return c, err
	}
	c.Items, err = list[json.RawMessage](ctx, l.store, itemPrefix)
	return c, err
}

// Fill has the ledger hold c, and nothing of what it held before. Nobody works with it meanwhile: it takes several
// transactions, and one that ended in the middle is simply done again.
func (l *Ledger) Fill(ctx context.Context, c ledger.Contents) error {
	if err := l.Clear(ctx); err != nil {
		return err
	}
	puts, err := putsOf(c)
	if err != nil {
		return err
	}
	for len(puts) > 0 {
		n, size := 0, 0
		for n < len(puts) && n < fillAtOnce && (n == 0 || size+len(puts[n].Value) <= fillBytes) {
			size += len(puts[n].Value)
			n++
		}
		if err := l.store.Commit(ctx, Txn{Puts: puts[:n]}); err != nil {
			return unavailable("fill the ledger", err)
		}
		puts = puts[n:]
	}
	return nil
}

// Clear has the ledger hold nothing. Nobody works with it meanwhile.
func (l *Ledger) Clear(ctx context.Context) error {
	for _, prefix := range prefixes {
		items, err := l.store.List(ctx, prefix)
		if err != nil {
			return unavailable("list "+prefix, err)
		}
		for part := range slices.Chunk(items, fillAtOnce) {
			var t Txn
			for _, it := range part {
				t.Deletes = append(t.Deletes, it.Key)
			}
			if err := l.store.Commit(ctx, t); err != nil {
				return unavailable("clear the ledger", err)
			}
		}
	}
	return nil
}

// putsOf are the rows of c.
func putsOf(c ledger.Contents) (puts []Put, err error) {
	add := func(p Put, encodeErr error) {
		puts = append(puts, p)
		if err == nil {
			err = encodeErr
		}
	}
	for _, t := range c.Tasks {
		if by := t.CancelBy; by != "" {
			t.CancelBy = ""
			add(encode(cancelPrefix+t.ID, cancelRow{By: by}))
		}
		add(encode(taskPrefix+t.ID, t))
	}
	for _, b := range c.Backups {
		add(encode(backupPrefix+b.ID, b))
	}
	for id, kept := range c.Logs {
		add(encode(logPrefix+id, kept))
	}
	for _, e := range c.Errors {
		add(encode(errorKey(e.Task, e.Token), e))
	}
	for _, raw := range c.Items {
		var k component.Kept
		if decodeErr := json.Unmarshal(raw, &k); decodeErr != nil {
			return nil, fmt.Errorf("decode an item: %w", decodeErr)
		}
		add(encode(itemKey(k.Item.ID), raw))
	}
	return puts, err
}
