package component

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Items keeps items with their events, and the records of any number of components: an Index and a Store, and what people
// and other programs do with items by hand. Every implementation passes componenttest.Run. Methods are safe for concurrent
// use and may block until ctx ends; errors are those of a ledger.
type Items interface {
	Index
	Store
	// Put inserts an item (type, id, data, events; Created and ChangedAt are its time unless given), or says what has become
	// of one that is there: with change true, that it has changed now, with new data unless that is empty, and with those of
	// the events that it does not have yet. Errors: what CheckItem says, ledger.ErrUnavailable.
	Put(ctx context.Context, it Item, change bool) (Item, error)
	// Edit replaces the data of an item by what edit makes of it; edit is pure and may be called more than once. A result
	// of work that had begun before does not overwrite it. Errors: edit's own, ledger.ErrNotFound, ledger.ErrUnavailable.
	Edit(ctx context.Context, id string, edit func(Item) (Item, error)) (Item, error)
	// Get reads an item as a component sees it; ledger.ErrNotFound.
	Get(ctx context.Context, component, id string) (Item, error)
	// All lists the items of a type ("" = all) as a component sees them, in order of id. ledger.ErrUnavailable when it
	// cannot be read.
	All(ctx context.Context, component, itemType string) ([]Item, error)
	// Drop removes an item with all that was known of it; one that is not there is no error.
	Drop(ctx context.Context, id string) error
	// Append adds an event by hand: its token is 0, and it is as old as it says. Errors: what CheckEvent says,
	// ledger.ErrNotFound, ledger.ErrUnavailable.
	Append(ctx context.Context, id string, e Event) error
	// Forget removes the events of a type from an item, so that it is as if that had never been done, and gives the
	// component that makes them another chance (Released). It tells how many. Errors: ledger.ErrNotFound,
	// ledger.ErrUnavailable.
	Forget(ctx context.Context, id, eventType string) (int, error)
}

// CheckItem says what is wrong with an item that is put. nil: nothing.
func CheckItem(it Item) error {
	if err := checkName("id", it.ID); err != nil {
		return fmt.Errorf("item: %w", err)
	}
	if err := checkName("type", it.Type); err != nil {
		return fmt.Errorf("item: %w", err)
	}
	if len(it.Data) > MaxData {
		return fmt.Errorf("item %s: data has %d bytes: at most %d", it.ID, len(it.Data), MaxData)
	}
	return nil
}

// CheckEvent says what is wrong with an event that is appended by hand. nil: nothing.
func CheckEvent(e Event) error {
	if err := checkName("type", e.Type); err != nil {
		return fmt.Errorf("event: %w", err)
	}
	if len(e.Details) > MaxText || len(e.Agent) > MaxText {
		return fmt.Errorf("event: details and agent have at most %d bytes each", MaxText)
	}
	return nil
}

// Kept is an item as a store keeps it: what all components share, and what each has noted. The rules of a store are its
// methods, pure; stores differ in how they keep it and check claims.
type Kept struct {
	Item    Item              `json:"item"`              // its Record is not used
	Records map[string]Record `json:"records,omitempty"` // by component
	Tokens  map[string]Token  `json:"tokens,omitempty"`  // of each component's last claim that began
	Edits   int               `json:"edits,omitempty"`   // how often the data was changed by others than workers
}

// Token is what is remembered of a claim.
type Token struct {
	Began uint64 `json:"began"`           // the token of the last claim that began
	Ended uint64 `json:"ended,omitempty"` // of the last result that is stored
	Edits int    `json:"edits,omitempty"` // Kept.Edits when it began: what was changed since is not overwritten
}

// Seen is the item as a component sees it.
func (k Kept) Seen(component string) Item {
	it := k.Item
	it.Record = k.Records[component]
	if it.Record.Created.IsZero() {
		it.Record.Created = it.ChangedAt
	}
	return it
}

// AfterBegin decides Store.Begin. fenced: a later claim has begun.
func (k Kept) AfterBegin(c Claim, at time.Time) (next Kept, fenced bool) {
	t := k.Tokens[c.Component]
	if t.Began > c.Token {
		return k, true
	}
	if t.Began == c.Token {
		return k, false // repeated
	}
	next = k.clone()
	r := next.Seen(c.Component).Record
	r.Attempts++
	r.LastAttempt = at
	next.Records[c.Component] = r
	next.Tokens[c.Component] = Token{Began: c.Token, Ended: t.Ended, Edits: k.Edits}
	return next, false
}

// AfterFinish decides Store.Finish. fenced: the claim has not begun here, or a later one has.
func (k Kept) AfterFinish(c Claim, r Result) (next Kept, fenced bool) {
	t := k.Tokens[c.Component]
	switch {
	case t.Began != c.Token:
		return k, true
	case t.Ended == c.Token:
		return k, false // repeated
	}
	next = k.clone()
	if r.Event.Type != "" {
		next.Item.Events = Bounded(append(next.Item.Events, r.Event))
	}
	next.Item.RoundTrip++
	if len(r.Report.Data) > 0 && t.Edits == k.Edits {
		next.Item.Data = r.Report.Data
	}
	next.Records[c.Component] = r.Record
	next.Tokens[c.Component] = Token{Began: c.Token, Ended: c.Token, Edits: t.Edits}
	return next, false
}

// AfterPut decides Items.Put of an item that is there and has changed; it has the time of the change.
func (k Kept) AfterPut(it Item) (next Kept) {
	next = k.clone()
	next.Item.ChangedAt = it.ChangedAt
	if len(it.Data) > 0 {
		next.Item.Data = it.Data
		next.Edits++
	}
	for _, e := range it.Events {
		known := func(o Event) bool { return o.Type == e.Type && o.Token == e.Token && o.Start.Equal(e.Start) }
		if !slices.ContainsFunc(next.Item.Events, known) {
			next.Item.Events = append(next.Item.Events, e)
		}
	}
	next.Item.Events = Bounded(next.Item.Events)
	return next
}

// AfterForget decides Items.Forget. Components whose events these are get another chance: one is named like its events
// unless it was configured otherwise, and then its record says nothing of it.
func (k Kept) AfterForget(eventType string) (next Kept, n int) {
	next = k.clone()
	kept := next.Item.Events[:0]
	for _, e := range next.Item.Events {
		if e.Type == eventType {
			n++
			continue
		}
		kept = append(kept, e)
	}
	next.Item.Events = kept
	if r, ok := next.Records[eventType]; ok {
		next.Records[eventType] = Released(r)
	}
	return next, n
}

func (k Kept) clone() Kept {
	next := Kept{Item: k.Item, Edits: k.Edits, Records: make(map[string]Record, len(k.Records)+1), Tokens: make(map[string]Token, len(k.Tokens)+1)}
	next.Item.Events = append([]Event(nil), k.Item.Events...)
	for name, r := range k.Records {
		next.Records[name] = r
	}
	for name, t := range k.Tokens {
		next.Tokens[name] = t
	}
	return next
}

// Answer is what an index answers of all items that it has, whatever it does to be quicker.
func Answer(all []Item, q Query) []Item {
	var out []Item
	for _, it := range all {
		if ok, _ := MatchAny(q.Triggers, it); ok && !it.Record.Quarantined {
			out = append(out, it)
		}
	}
	ready := Order(out, q.At)
	if q.Limit > 0 && len(ready) > q.Limit {
		return ready[:q.Limit]
	}
	return ready
}
