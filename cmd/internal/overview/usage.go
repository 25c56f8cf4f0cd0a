package overview

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// forecastOver is the time whose growth foretells what comes: a ledger remembers for longer what went. forecastLeast is the
// least that must be known of it.
const (
	forecastOver  = 7 * 24 * time.Hour
	forecastLeast = 3 * 24 * time.Hour
)

// Kept is a copy of a complete backup in a storage, as far as usage is concerned.
type Kept struct {
	Storage, Database string
	Bytes             int64
	Since             time.Time // it lies there
	Gone              time.Time // it was deleted; zero: it is there
}

// Usage adds up what lies in each storage and of each database, and foretells when a storage is full. free is what is left
// in those storages that can tell. What grows is what came in the last week less what went, by day: a stock from which
// retention takes as much as comes does not grow.
func Usage(all []Kept, free map[string]int64, now time.Time) api.Usage {
	u := api.Usage{Storages: []api.StorageUsage{}, Databases: []api.DatabaseUsage{}}
	for _, name := range names(all, func(k Kept) string { return k.Storage }, free) {
		s := api.StorageUsage{Storage: name}
		s.Bytes, s.Backups, s.PerDay = sum(all, func(k Kept) bool { return k.Storage == name }, now)
		if left, known := free[name]; known {
			s.Free = &left
			s.Full = full(left, s.PerDay, now)
		}
		u.Storages = append(u.Storages, s)
	}
	for _, name := range names(all, func(k Kept) string { return k.Database }, nil) {
		d := api.DatabaseUsage{Database: name}
		d.Bytes, d.Copies, d.PerDay = sum(all, func(k Kept) bool { return k.Database == name }, now)
		u.Databases = append(u.Databases, d)
	}
	slices.SortStableFunc(u.Databases, func(a, b api.DatabaseUsage) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return u
}

func names(all []Kept, of func(Kept) string, more map[string]int64) []string {
	found := map[string]bool{}
	for _, k := range all {
		found[of(k)] = true
	}
	for name := range more {
		found[name] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// sum adds up what is there of what is wanted, and by how much it grows a day; 0 while too little is known.
func sum(all []Kept, wanted func(Kept) bool, now time.Time) (bytes int64, n int, perDay int64) {
	from := now.Add(-forecastOver)
	var net int64
	oldest := now
	for _, k := range all {
		if !wanted(k) {
			continue
		}
		if k.Since.Before(oldest) {
			oldest = k.Since
		}
		if k.Since.After(from) {
			net += k.Bytes
		}
		switch {
		case k.Gone.IsZero():
			bytes, n = bytes+k.Bytes, n+1
		case k.Gone.After(from):
			net -= k.Bytes
		}
	}
	span := now.Sub(oldest)
	if span < forecastLeast {
		return bytes, n, 0
	}
	return bytes, n, int64(float64(net) / min(span, forecastOver).Hours() * 24)
}

// full is when a storage has no room left, at the latest in ten years; nil when it does not grow.
func full(free, perDay int64, now time.Time) *time.Time {
	if perDay <= 0 {
		return nil
	}
	days := float64(free) / float64(perDay)
	if days > 3650 {
		return nil
	}
	at := now.Add(time.Duration(days * float64(24*time.Hour))).UTC().Truncate(time.Hour)
	return &at
}
