package retention

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func drawBackups(t *rapid.T) []Backup {
	n := rapid.IntRange(0, 40).Draw(t, "backups")
	list := make([]Backup, n)
	often := func(name string, percent int) bool { return rapid.IntRange(0, 99).Draw(t, name) < percent }
	for i := range list {
		hours := rapid.OneOf(rapid.IntRange(0, 72), rapid.IntRange(0, 24*900)).Draw(t, "age")
		list[i] = Backup{
			ID: fmt.Sprintf("b%02d", i), AsOf: now.Add(-time.Duration(hours) * time.Hour),
			Good: often("good", 85), Verified: often("verified", 75), Suspect: often("suspect", 10), Accepted: true,
			Pinned: often("pinned", 10), InUse: often("in use", 5),
		}
		if often("locked", 5) {
			list[i].Locked = now.Add(time.Hour)
		}
	}
	return list
}

func drawPolicy(t *rapid.T, least int) Policy {
	places := func(name string) int { return rapid.IntRange(least, 8).Draw(t, name) }
	return Policy{
		Last: places("last"), Hourly: places("hourly"), Daily: places("daily"), Weekly: places("weekly"),
		Monthly: places("monthly"), Yearly: places("yearly"), MinKeep: places("min keep"),
		MaxAge:     time.Duration(rapid.IntRange(least, 400).Draw(t, "days")) * 24 * time.Hour,
		Unverified: rapid.Bool().Draw(t, "unverified"),
	}
}

func removed(p Policy, list []Backup) []string {
	return Decide(p, Input{Backups: list, Now: now, Confirmed: true}).Remove()
}

func newest(list []Backup, want func(Backup) bool) (out Backup, ok bool) {
	for _, b := range list {
		if want(b) && (!ok || b.AsOf.After(out.AsOf) || b.AsOf.Equal(out.AsOf) && b.ID > out.ID) {
			out, ok = b, true
		}
	}
	return out, ok
}

func TestNeverTheLastGoodOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list, p := drawBackups(t), drawPolicy(t, 0)
		gone := removed(p, list)
		if b, ok := newest(list, p.counts); ok && slices.Contains(gone, b.ID) {
			t.Fatalf("%s goes, the newest that counts", b.ID)
		} else if !ok && len(gone) > 0 {
			t.Fatalf("%v go, and none counts", gone)
		}
		if b, ok := newest(list, Backup.good); ok && slices.Contains(gone, b.ID) {
			t.Fatalf("%s goes, the newest good one", b.ID)
		}
		left := 0
		total := 0
		for _, b := range list {
			if p.counts(b) {
				total++
				if !slices.Contains(gone, b.ID) {
					left++
				}
			}
			if (b.Pinned || !b.Locked.IsZero() || b.InUse) && slices.Contains(gone, b.ID) {
				t.Fatalf("%+v goes", b)
			}
		}
		if left < min(total, max(1, p.MinKeep)) {
			t.Fatalf("%d of %d that count are left, min keep is %d", left, total, p.MinKeep)
		}
	})
}

func TestIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list, p := drawBackups(t), drawPolicy(t, 0)
		gone := removed(p, list)
		left := slices.DeleteFunc(slices.Clone(list), func(b Backup) bool { return slices.Contains(gone, b.ID) })
		if again := removed(p, left); len(again) > 0 {
			t.Fatalf("%v went, then %v", gone, again)
		}
	})
}

func TestMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list, p := drawBackups(t), drawPolicy(t, 1)
		more := p
		for _, n := range []*int{&more.Last, &more.Hourly, &more.Daily, &more.Weekly, &more.Monthly, &more.Yearly, &more.MinKeep} {
			*n += rapid.IntRange(0, 3).Draw(t, "more")
		}
		more.MaxAge += time.Duration(rapid.IntRange(0, 1000).Draw(t, "longer")) * time.Hour
		gone := removed(p, list)
		for _, id := range removed(more, list) {
			if !slices.Contains(gone, id) {
				t.Fatalf("%s goes under the larger policy %+v only", id, more)
			}
		}
	})
}

func TestPinsTakeNothingFromOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list, p := drawBackups(t), drawPolicy(t, 0)
		gone := removed(p, list)
		if len(list) == 0 {
			return
		}
		pin := rapid.IntRange(0, len(list)-1).Draw(t, "pin")
		list[pin].Pinned = true
		want := slices.DeleteFunc(slices.Clone(gone), func(id string) bool { return id == list[pin].ID })
		if got := removed(p, list); !slices.Equal(got, want) {
			t.Fatalf("with %s pinned %v go, without %v", list[pin].ID, got, gone)
		}
	})
}

func TestOrderAndPresentTimeDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list, p := drawBackups(t), drawPolicy(t, 0)
		gone := removed(p, list)
		shuffled := rapid.Permutation(list).Draw(t, "order")
		later := now.Add(time.Duration(rapid.IntRange(0, 10000).Draw(t, "hours")) * time.Hour)
		if got := Decide(p, Input{Backups: shuffled, Now: later, Confirmed: true}).Remove(); !slices.Equal(got, gone) {
			t.Fatalf("%v go, and in another order later %v", gone, got)
		}
	})
}
