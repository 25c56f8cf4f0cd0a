package component

import "time"

// skips are the items that this node leaves alone for a while without having been able to say so in their record: they
// turned out stale, could not be stored, or asked to be as if they had never been tried.
type skips map[string]skip

type skip struct {
	until time.Time
	times int
}

// maxSkips bounds the memory; what is forgotten is only tried again earlier.
const maxSkips = 10_000

func (s skips) has(it Item, now time.Time) bool { return s[skipKey(it)].until.After(now) }

// add leaves an item alone, longer each time.
func (s skips) add(it Item, f Fairness, now time.Time) {
	if len(s) >= maxSkips {
		for k, v := range s {
			if !v.until.After(now) {
				delete(s, k)
			}
		}
		if len(s) >= maxSkips {
			clear(s)
		}
	}
	times := s[skipKey(it)].times + 1
	s[skipKey(it)] = skip{now.Add(f.Wait(times)), times}
}

func (s skips) drop(it Item) { delete(s, skipKey(it)) }

func skipKey(it Item) string { return it.Type + "\x00" + it.ID }
