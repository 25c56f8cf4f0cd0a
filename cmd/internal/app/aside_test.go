package app

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/cmd/internal/overview"
	"github.com/fencepost/fencepost/pipeline/component"
)

// TestAsideOf: of the items of a component those that it has given up, each with its own last failure and nobody else's.
func TestAsideOf(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 3, 29, 12, minute, 0, 0, time.UTC) }
	failed := func(agent string, minute int, why string) component.Event {
		return component.Event{Type: "export", Start: at(minute), Agent: agent, Details: why}
	}
	given := component.Record{Failures: 5, Quarantined: true}
	got := asideOf("export", []component.Item{
		{ID: "a"},
		{ID: "b", Record: given, Events: []component.Event{failed("export@n1", 3, "disk full"), failed("export@n2", 1, "no host"), failed("other@n1", 9, "else"), {Type: "export", Start: at(20), Agent: "export@n1", Success: true}}},
		{ID: "c", Record: component.Record{Failures: 4}},
		{ID: "d", Record: given},
	})
	want := []overview.Aside{{Component: "export", Item: "b", Failures: 5, Why: "disk full", Since: at(3)}, {Component: "export", Item: "d", Failures: 5}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
