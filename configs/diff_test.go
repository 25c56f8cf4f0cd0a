package configs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDifferences(t *testing.T) {
	a, b := Default(), Default()
	if got := Differences(&a, &b); got != nil {
		t.Errorf("%q", got)
	}
	b.Home, b.Raft.Voters, b.Notify.Heartbeat.URL, b.Log.Level = "/x", 5, NewSecret("env:X"), "debug"
	b.Databases = []Database{{Name: "shop", DSN: NewDSN("postgres://h/d")}}
	c := b
	c.Databases = []Database{{Name: "shop", DSN: NewDSN("postgres://u:p@h/d")}} // the password counts
	want := []string{"home", "raft.voters", "databases", "notify.heartbeat.url", "log.level"}
	if diff := cmp.Diff(want, Differences(&a, &b)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"databases"}, Differences(&b, &c)); diff != "" {
		t.Error(diff)
	}
}
