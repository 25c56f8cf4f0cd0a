package component

import (
	"fmt"
	"slices"
	"time"
)

// Trigger says which items a component wants. All fields must be satisfied; an empty field restricts nothing. Of the
// events of a type only the newest counts.
type Trigger struct {
	Past       []string // event types: the newest exists and succeeded
	PastFailed []string // event types: the newest exists and failed
	Future     []string // event types: there is none at all, whatever its outcome
	Old        []string // event types: there is none, or the newest is not newer than the item's last change
	Types      []string // the item is of one of these types
	Items      []string // the item has one of these ids
}

// Match tells whether an item is wanted, and for one that is not, each reason why not: one sentence per field and event
// type, in the order of Trigger's fields.
func (t Trigger) Match(it Item) (ok bool, why []string) {
	no := func(format string, args ...any) { why = append(why, fmt.Sprintf(format, args...)) }
	for _, typ := range t.Past {
		if e, found := it.Newest(typ); !found {
			no("there is no %s yet", typ)
		} else if !e.Success {
			no("the newest %s failed, it must have succeeded", typ)
		}
	}
	for _, typ := range t.PastFailed {
		if e, found := it.Newest(typ); !found {
			no("there is no %s, a failed one is wanted", typ)
		} else if e.Success {
			no("the newest %s succeeded, it must have failed", typ)
		}
	}
	for _, typ := range t.Future {
		if e, found := it.Newest(typ); found {
			no("there is already an event %s (%s)", typ, outcomeOf(e))
		}
	}
	for _, typ := range t.Old {
		if e, found := it.Newest(typ); found && e.Start.After(it.ChangedAt) {
			no("the newest %s (%s) is newer than the last change (%s)", typ, stamp(e.Start), stamp(it.ChangedAt))
		}
	}
	if len(t.Types) > 0 && !slices.Contains(t.Types, it.Type) {
		no("type %s is not wanted", it.Type)
	}
	if len(t.Items) > 0 && !slices.Contains(t.Items, it.ID) {
		no("item %s is not wanted", it.ID)
	}
	return len(why) == 0, why
}

// Retry is the trigger for items that t wanted until work failed on them: like t, but the newest event of the given type
// failed, where t wants none or an old one. Since a failed event is an event, t alone would never want them again. It is
// false when t does not mind events of the type.
func (t Trigger) Retry(eventType string) (Trigger, bool) {
	if !slices.Contains(t.Future, eventType) && !slices.Contains(t.Old, eventType) {
		return Trigger{}, false
	}
	without := func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == eventType })
	}
	t.Future, t.Old = without(t.Future), without(t.Old)
	t.PastFailed = append(without(t.PastFailed), eventType)
	return t, true
}

// MatchAny tells whether any of the triggers wants the item; when none does, why the first one does not.
func MatchAny(triggers []Trigger, it Item) (ok bool, why []string) {
	for i, t := range triggers {
		wanted, reasons := t.Match(it)
		if wanted {
			return true, nil
		}
		if i == 0 {
			why = reasons
		}
	}
	return false, why
}

func outcomeOf(e Event) string {
	if e.Success {
		return "succeeded"
	}
	return "failed"
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
