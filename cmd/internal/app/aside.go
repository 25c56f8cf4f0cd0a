package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/overview"
	"github.com/fencepost/fencepost/pipeline/component"
)

const (
	asideEvery = 30 * time.Second // the items of all components are looked through so often
	mostAside  = 50               // of one component that are told of
)

// asideSeen are the items that were set aside when they were looked for last. It belongs to who makes the overview, who is
// one at a time.
type asideSeen struct {
	at   time.Time
	list []overview.Aside
}

// setAside are items on which a component has failed too often in a row. What cannot be read now is as it was.
func (a *App) setAside(ctx context.Context, w *work) []overview.Aside {
	if !a.aside.at.IsZero() && time.Since(a.aside.at) < asideEvery {
		return a.aside.list
	}
	list, err := lookAside(ctx, w)
	if err != nil {
		a.log.Debug("app: the items of components were not looked through; that is tried again", "error", err)
		return a.aside.list
	}
	a.aside = asideSeen{time.Now(), list}
	return list
}

// lookAside looks through the items of all components.
func lookAside(ctx context.Context, w *work) (list []overview.Aside, err error) {
	for _, name := range slices.Sorted(maps.Keys(w.triggers)) {
		all, err := w.items.All(ctx, name, "")
		if err != nil {
			return nil, fmt.Errorf("items of %s: %w", name, err)
		}
		list = append(list, asideOf(name, all)...)
	}
	return list, nil
}

// asideOf are those of a component's items that it has given up.
func asideOf(name string, all []component.Item) (list []overview.Aside) {
	for _, it := range all {
		if !it.Record.Quarantined {
			continue
		}
		one := overview.Aside{Component: name, Item: it.ID, Failures: it.Record.Failures}
		for _, e := range it.Events {
			if !e.Success && strings.HasPrefix(e.Agent, name+"@") && !e.Start.Before(one.Since) {
				one.Since, one.Why = e.Start, e.Details
			}
		}
		if list = append(list, one); len(list) == mostAside {
			break
		}
	}
	return list
}
