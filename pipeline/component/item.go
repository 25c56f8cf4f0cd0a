package component

import (
	"encoding/json"
	"time"
)

// Event is one fact about an item: that work of some type was done on it, or failed.
type Event struct {
	Type    string    `json:"type"`              // a word: what was done
	Start   time.Time `json:"start"`             // of the work, not of its end: what changed meanwhile was not seen by it
	Success bool      `json:"success"`           // it was done; else it failed
	Agent   string    `json:"agent"`             // component@node
	Details string    `json:"details,omitempty"` // bounded, no secrets
	Token   uint64    `json:"token"`             // of the claim under which it was made
	Attempt int       `json:"attempt"`           // which one it was, from 1
}

// Item is a thing that is worked on, as one component sees it.
type Item struct {
	Type      string    `json:"type"`       // a word: what kind of thing it is
	ID        string    `json:"id"`         // names the item in claims: unique among all that the component's index knows
	RoundTrip int       `json:"round_trip"` // with which it is claimed; grows each time that it is handed on
	ChangedAt time.Time `json:"changed_at"` // when the thing itself changed last: Trigger.Old compares with it
	Events    []Event   `json:"events"`     // in the order in which they were stored
	Version   uint64    `json:"version"`    // grows with each change of the entry
	Record    Record    `json:"record"`     // of the component that asks
	// Data is what the item is, for its workers; a Report may replace it. At most MaxData bytes.
	Data json.RawMessage `json:"data,omitempty"`
}

// MaxData bounds Item.Data, MaxEvents the events that a store keeps of an item: the oldest go, but for the newest of each
// type, which is the one that counts.
const (
	MaxData   = 16 << 10
	MaxEvents = 100
)

// Bounded are events within MaxEvents.
func Bounded(events []Event) []Event {
	if len(events) <= MaxEvents {
		return events
	}
	newest := map[string]Event{}
	it := Item{Events: events}
	for _, e := range events {
		newest[e.Type], _ = it.Newest(e.Type)
	}
	over := len(events) - MaxEvents
	out := make([]Event, 0, MaxEvents)
	for _, e := range events {
		if over > 0 && newest[e.Type] != e {
			over--
			continue
		}
		out = append(out, e)
	}
	return out
}

// Record is what fairness needs to know of an item and a component. The zero value is that of an item nobody has tried.
type Record struct {
	Created     time.Time `json:"created,omitzero"`      // when the component could first have worked on it
	LastAttempt time.Time `json:"last_attempt,omitzero"` // when the last attempt began
	NotBefore   time.Time `json:"not_before,omitzero"`   // no attempt before this; zero: at once
	Attempts    int       `json:"attempts"`              // begun since the last success
	Failures    int       `json:"failures"`              // since the last success
	Quarantined bool      `json:"quarantined,omitempty"` // nobody claims it until a person has released it
}

// Newest returns the newest event of a type: the one that counts. It is the one that started last; of two that started
// at once the larger token, then the one stored later.
func (it Item) Newest(eventType string) (Event, bool) {
	var newest Event
	found := false
	for _, e := range it.Events {
		if e.Type != eventType {
			continue
		}
		c := e.Start.Compare(newest.Start)
		if !found || c > 0 || c == 0 && e.Token >= newest.Token {
			newest, found = e, true
		}
	}
	return newest, found
}
