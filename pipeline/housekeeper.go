package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/source"
)

// Components that clean up, so that one node at a time does, and another when that one dies.
const (
	// SweepComponent removes from the storages what cannot count any more; its items are the storages.
	SweepComponent = "sweep"
	// TidyComponent drops the databases that restores have replaced, once their time as an undo is over; its items are the
	// databases.
	TidyComponent = "tidy"
)

// storageItems is the type of the items of sweep.
const storageItems = "storage"

const (
	sweepEvery = time.Hour
	tidyEvery  = time.Minute
)

// expirer is a source that keeps what restores replaced, for a while.
type expirer interface {
	ExpireOld(ctx context.Context, a source.Attempt) ([]string, error)
}

// Housekeeper makes the components that clean up. They make no events: what they do is done again and again.
type Housekeeper struct {
	w     *Worker
	items component.Items
	noted notedItems
}

// NewHousekeeper cleans up in what a worker works with.
func NewHousekeeper(w *Worker, items component.Items) *Housekeeper {
	return &Housekeeper{w: w, items: items}
}

func storageItem(name string) string { return storageItems + ":" + name }

// Begin makes the items of the storages and databases that nobody knew yet. Called before the components start, and
// whenever the worker's catalog was renewed.
func (h *Housekeeper) Begin(ctx context.Context) error {
	var want []component.Item
	cat := h.w.conf().Catalog
	for name := range cat.Storages {
		want = append(want, component.Item{Type: storageItems, ID: storageItem(name)})
	}
	for name := range cat.Sources {
		want = append(want, component.Item{Type: databaseItems, ID: databaseItem(name)})
	}
	for _, it := range want {
		if err := h.noted.put(ctx, h.items, it); err != nil {
			return fmt.Errorf("note %s: %w", it.ID, err)
		}
	}
	return nil
}

// Components fills in what is the housekeeper's of the configurations of its components; the caller adds the group's side.
func (h *Housekeeper) Components() []component.Config {
	return []component.Config{
		h.component(SweepComponent, storageItems, sweepEvery, h.sweep, func(it component.Item) bool {
			return h.w.conf().Catalog.Storages[nameAfter(it)] != nil
		}),
		h.component(TidyComponent, databaseItems, tidyEvery, h.tidy, func(it component.Item) bool {
			_, ok := h.w.conf().Catalog.Sources[nameAfter(it)].(expirer)
			return ok
		}),
	}
}

func (h *Housekeeper) component(name, items string, every time.Duration, work component.Func, able func(component.Item) bool) component.Config {
	again := rounds{h.items, items, every, &sync.Map{}, false}
	return component.Config{
		Component: name, Trigger: component.Trigger{Types: []string{items}}, NoEvent: true, Peek: true, Every: min(every, time.Minute), Limit: 6 * time.Hour,
		Able: able, Worker: work, Index: again, Store: again, Now: h.w.cfg.Now,
		Fairness: component.Fairness{BackOff: time.Minute, MaxBackOff: time.Hour, QuarantineAfter: -1},
	}
}

// nameAfter is the name behind an item's type.
func nameAfter(it component.Item) string { return strings.TrimPrefix(it.ID, it.Type+":") }

func (h *Housekeeper) sweep(ctx context.Context, j component.Job) (component.Report, error) {
	err := h.w.sweepStorage(ctx, nameAfter(j.Item))
	return component.Report{}, h.told(ctx, "a storage was not swept whole", err)
}

// tidy asks a source once; its sessions carry a task of their own, and the claim's token.
func (h *Housekeeper) tidy(ctx context.Context, j component.Job) (component.Report, error) {
	name := nameAfter(j.Item)
	e, ok := h.w.conf().Catalog.Sources[name].(expirer)
	if !ok {
		return component.Report{}, errors.New("its source keeps nothing")
	}
	dropped, err := e.ExpireOld(ctx, source.Attempt{Task: NewID(h.w.cfg.Now()), Token: j.Token})
	if len(dropped) > 0 {
		h.w.cfg.Logger.InfoContext(ctx, "replaced databases dropped, their time as an undo is over", "database", name, "dropped", fmt.Sprint(dropped))
	}
	return component.Report{}, h.told(ctx, "replaced databases not looked through", err)
}

// told logs what is noted in a record that few look at.
func (h *Housekeeper) told(ctx context.Context, what string, err error) error {
	if err != nil && ctx.Err() == nil {
		h.w.cfg.Logger.WarnContext(ctx, what, "err", err)
	}
	return err
}

// rounds are items that are wanted again some time after each attempt.
type rounds struct {
	component.Items
	of    string // type
	every time.Duration
	tried *sync.Map // token of this process' last attempt, by item
	soon  bool      // after a failure as soon as fairness lets it
}

// Query implements component.Index.
func (r rounds) Query(ctx context.Context, q component.Query) ([]component.Item, error) {
	all, err := r.All(ctx, q.Component, r.of)
	if err != nil {
		return nil, err
	}
	var out []component.Item
	for _, it := range all {
		if ok, _ := component.MatchAny(q.Triggers, it); ok {
			it.Record.NotBefore = r.after(it.Record)
			out = append(out, it)
		}
	}
	return out, nil
}

// after is from when on an item is wanted again.
func (r rounds) after(record component.Record) time.Time {
	if record.LastAttempt.IsZero() || r.soon && record.Failures > 0 {
		return record.NotBefore
	}
	return latest(record.NotBefore, record.LastAttempt.Add(r.every))
}

// Begin implements component.Store: under the claim it says once more whether the time has come, since somebody may have
// been there between the look and the claim. A repeated call finds its own attempt, which it knows by the claim's token: two
// nodes may begin at the same time to the last digit.
func (r rounds) Begin(ctx context.Context, c component.Claim, at time.Time) (component.Item, error) {
	last, _ := r.tried.Swap(c.Item, c.Token)
	before, err := r.Get(ctx, c.Component, c.Item)
	if err != nil {
		return before, err
	}
	it, err := r.Items.Begin(ctx, c, at)
	if own := last == c.Token && before.Record.LastAttempt.Sub(at).Abs() < time.Microsecond; !own {
		it.Record.NotBefore = r.after(before.Record)
	}
	return it, err
}
