package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/signals"
)

// Each core member writes into the state cache what it has to carry tasks out with, under abilities/<node>, so that every
// node can say why nobody begins a task. Who may claim is decided by each node for itself.

const abilitiesFormat = 1

const abilitiesComponent = "abilities"

func abilitiesKey(node string) gms.Key { return gms.Key{Component: abilitiesComponent, Key: node} }

// abilitiesRecord is what the group keeps of a node.
type abilitiesRecord struct {
	Format int `json:"format"`
	pipeline.Abilities
	File []string `json:"file,omitempty"` // what the node's file names, as "database shop": no setting has such a name
}

func (r *abilitiesRecord) read(value []byte) error {
	if err := json.Unmarshal(value, r); err != nil {
		return err
	}
	if r.Format != abilitiesFormat {
		return fmt.Errorf("abilities of format %d", r.Format)
	}
	return nil
}

// abilities are this node's now. It does not block.
func (a *App) abilities() pipeline.Abilities {
	a.mu.Lock()
	defer a.mu.Unlock()
	able := a.able
	for _, name := range slices.Sorted(maps.Keys(a.shelves)) {
		if a.shelves[name].State == shelfStrange {
			able.Away = append(able.Away, name)
		}
	}
	return able
}

// tellAbilities has the group know what this node can do. It changes nothing when it knows already.
func (a *App) tellAbilities(ctx context.Context) error {
	key := abilitiesKey(a.cfg.Node)
	mine := putOf(key, abilitiesRecord{Format: abilitiesFormat, Abilities: a.abilities(), File: a.namesInFile()})
	known, err := a.group.Cache().Get(ctx, key)
	if err == nil && string(known.Value) == string(mine.Value) {
		return nil
	}
	if err != nil && !errors.Is(err, gms.ErrNotFound) {
		return fmt.Errorf("ask the group what it knows of this node: %w", err)
	}
	if _, err = a.group.Cache().Commit(ctx, gms.Txn{Puts: []gms.Put{mine}}); err != nil {
		return fmt.Errorf("tell the group what this node can do: %w", err)
	}
	return nil
}

// around is what a planned task's waiting depends on, as this node knows it.
func (a *App) around(ctx context.Context, w *work, t ledger.Task) (pipeline.Around, error) {
	active, err := w.ledger.Tasks(ctx, ledger.TaskFilter{Active: true})
	if err != nil {
		return pipeline.Around{}, err
	}
	out := pipeline.Around{Active: active, Members: make(map[string]pipeline.Abilities), Paused: a.paused(pipeline.Component(t.Type)), Done: doneTasks{a}.Done(t.ID)}
	for _, m := range a.group.Members() {
		if m.Role != signals.Core {
			continue
		}
		if _, _, drained := a.drainOf(m.Node); drained {
			out.Drained = append(out.Drained, m.Node)
			continue
		}
		var r abilitiesRecord
		e, err := a.group.Cache().GetLocal(abilitiesKey(m.Node))
		if err != nil || r.read(e.Value) != nil {
			out.Unknown = true // it has just come, or is of another version
			continue
		}
		out.Members[m.Node] = r.Abilities
	}
	return out, nil
}
