package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/kept"
)

// Keep is how many records the group keeps.
const Keep = 1024

// headKey is the key of what the next record follows.
const headKey = "audit/head"

func recordKey(seq uint64) string { return fmt.Sprintf("audit/record/%016d", seq) }

// head is the end of the chain.
type head struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"`
}

// Trail is the group's sequence of records. Safe for concurrent use.
type Trail struct {
	store kept.Store
	node  string
	now   func() time.Time
	turn  chan struct{} // who holds it appends: those of one process need not get ahead of each other
}

// New makes a trail over what is kept in store; node is the one that writes.
func New(store kept.Store, node string, now func() time.Time) *Trail {
	return &Trail{store: store, node: node, now: now, turn: make(chan struct{}, 1)}
}

// Append writes an entry at the end, and gives its record. It blocks until that is safe, or ctx ends.
func (t *Trail) Append(ctx context.Context, e Entry) (api.AuditRecord, error) {
	var r api.AuditRecord
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return r, fmt.Errorf("write to the audit trail: %w", context.Cause(ctx))
	}
	err := kept.Update(ctx, t.store, headKey, func(end kept.Record) ([]kept.Change, error) {
		var last head
		if end.Version != 0 {
			if err := json.Unmarshal(end.Value, &last); err != nil {
				return nil, fmt.Errorf("read the end of the audit trail: %w", err)
			}
		}
		r = seal(api.AuditRecord{
			Seq: last.Seq + 1, At: t.now().UTC().Round(0), Node: t.node, Actor: e.Actor, Role: e.Role, Via: e.Via, Address: e.Address,
			Action: e.Action, Target: e.Target, Phase: e.Phase, Of: e.Of, Problem: e.Problem, Request: e.Request, Before: e.Before, After: e.After,
			Approver: e.Approver,
		}, last.Hash)
		changes := []kept.Change{kept.Put(headKey, head{r.Seq, r.Hash}, end.Version), kept.Put(recordKey(r.Seq), r, 0)}
		if r.Seq > Keep {
			old, err := t.store.Get(ctx, recordKey(r.Seq-Keep))
			if err != nil {
				return nil, err
			}
			if old.Version != 0 {
				changes = append(changes, kept.Delete(old))
			}
		}
		return changes, nil
	})
	if err != nil {
		return r, fmt.Errorf("write to the audit trail: %w", err)
	}
	return r, nil
}

// List gives those of the kept records that f selects, newest first.
func (t *Trail) List(ctx context.Context, f api.AuditFilter) ([]api.AuditRecord, error) {
	all, err := t.all(ctx)
	if err != nil {
		return nil, err
	}
	list := []api.AuditRecord{}
	for _, r := range slices.Backward(all) {
		if selects(f, r) {
			if list = append(list, r); f.Limit > 0 && len(list) == f.Limit {
				break
			}
		}
	}
	return list, nil
}

func selects(f api.AuditFilter, r api.AuditRecord) bool {
	switch {
	case f.After != 0 && r.Seq >= f.After,
		f.Actor != "" && r.Actor != f.Actor,
		f.Target != "" && r.Target != f.Target,
		f.Action != "" && r.Action != f.Action && !strings.HasPrefix(r.Action, f.Action+"."):
		return false
	}
	return true
}

// all are the kept records, oldest first.
func (t *Trail) all(ctx context.Context) ([]api.AuditRecord, error) {
	kept, err := t.store.List(ctx, "audit/record/")
	if err != nil {
		return nil, fmt.Errorf("read the audit trail: %w", err)
	}
	list := make([]api.AuditRecord, len(kept))
	for i, k := range kept {
		if err := json.Unmarshal(k.Value, &list[i]); err != nil {
			return nil, fmt.Errorf("read the audit trail: %s: %w", k.Key, err)
		}
	}
	return list, nil
}

// Check looks at all kept records, and that the last one is the chain's end.
func (t *Trail) Check(ctx context.Context) (api.AuditCheck, error) {
	all, err := t.all(ctx)
	if err != nil {
		return api.AuditCheck{}, err
	}
	end, err := t.store.Get(ctx, headKey)
	if err != nil || end.Version == 0 {
		return api.AuditCheck{Whole: err == nil && len(all) == 0}, err
	}
	var last head
	if err := json.Unmarshal(end.Value, &last); err != nil {
		return api.AuditCheck{}, fmt.Errorf("read the end of the audit trail: %w", err)
	}
	out := api.AuditCheck{Records: len(all), Last: last.Seq, Hash: last.Hash}
	problem := Check(all)
	switch {
	case problem != nil:
	case len(all) == 0:
		problem = fmt.Errorf("no record is left of %d", last.Seq)
	case all[len(all)-1].Seq < last.Seq || all[len(all)-1].Seq == last.Seq && all[len(all)-1].Hash != last.Hash:
		problem = fmt.Errorf("the last record is %d, and the chain ends with %d", all[len(all)-1].Seq, last.Seq)
	case all[0].Seq != 1 && len(all) < Keep:
		problem = fmt.Errorf("the first records are missing: there is none before %d", all[0].Seq)
	}
	if len(all) > 0 {
		out.First = all[0].Seq
	}
	if out.Whole = problem == nil; !out.Whole {
		out.Problem = problem.Error()
	}
	return out, nil
}
