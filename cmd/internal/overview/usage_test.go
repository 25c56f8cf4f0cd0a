package overview

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

const day = 24 * time.Hour

// nightly is a copy of 100 bytes for each of the last n nights, of which those older than keep days are gone.
func nightly(storage, database string, n, keep int) (list []Kept) {
	for i := range n {
		k := Kept{Storage: storage, Database: database, Bytes: 100, Since: now.Add(-time.Duration(i)*day - time.Hour)}
		if i >= keep {
			k.Gone = k.Since.Add(time.Duration(keep)*day + time.Minute)
		}
		list = append(list, k)
	}
	return list
}

// TestUsage: what is there, what it grows by a day, and when there is no room left.
func TestUsage(t *testing.T) {
	all := append(nightly("disk", "shop", 30, 30), nightly("nas", "shop", 30, 10)...)
	all = append(all, Kept{Storage: "nas", Database: "books", Bytes: 7, Since: now.Add(-day)})
	got := Usage(all, map[string]int64{"disk": 1000, "empty": 5}, now)
	free, none := int64(1000), int64(5)
	fullAt := now.Add(10 * day)
	want := api.Usage{
		Storages: []api.StorageUsage{
			{Storage: "disk", Bytes: 3000, Backups: 30, PerDay: 100, Free: &free, Full: &fullAt},
			{Storage: "empty", Free: &none},
			{Storage: "nas", Bytes: 1007, Backups: 11, PerDay: 1},
		},
		Databases: []api.DatabaseUsage{{Database: "shop", Bytes: 4000, Copies: 40, PerDay: 100}, {Database: "books", Bytes: 7, Copies: 1}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestForecast says nothing before it knows three days, and nothing of what does not grow, or not in ten years.
func TestForecast(t *testing.T) {
	if got := Usage(nightly("disk", "shop", 3, 3), map[string]int64{"disk": 10}, now).Storages[0]; got.PerDay != 0 || got.Full != nil {
		t.Errorf("%+v", got)
	}
	for _, test := range []struct {
		free, perDay int64
		want         time.Duration // 0: none
	}{{100, 0, 0}, {100, -5, 0}, {100, 50, 2 * day}, {3651, 1, 0}, {0, 1, time.Nanosecond}} {
		got := full(test.free, test.perDay, now)
		if (got != nil) != (test.want > 0) || got != nil && got.Sub(now).Truncate(time.Hour) != test.want.Truncate(time.Hour) {
			t.Errorf("%d free, %d a day: %v", test.free, test.perDay, got)
		}
	}
}
