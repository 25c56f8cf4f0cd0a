package app

import (
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

func TestKitLacks(t *testing.T) {
	kit := api.Kit{ID: "k1", Places: map[string]string{"disk": "a", "cloud": "b", "gone": "c"}, Signers: []string{"s1", "s2"}}
	for _, c := range []struct {
		places  map[string]string
		id      string
		signers map[string]string
		want    string
	}{
		{map[string]string{"disk": "a", "cloud": "b"}, "k1", map[string]string{"s1": "n1", "s2": "n2"}, ""},
		{map[string]string{"disk": "a"}, "", nil, ""},
		{map[string]string{"disk": "x", "vault": "v"}, "k1", nil, "storage disk is in another place now; storage vault is newer"},
		{nil, "k2", map[string]string{"s3": "n3", "s4": "n3"}, "backups take the keys of kit k2 now; node n3 is newer, and its backups are not believed"},
	} {
		if got := strings.Join(kitLacks(kit, c.places, c.id, c.signers), "; "); got != c.want {
			t.Errorf("lacks %q, want %q", got, c.want)
		}
	}
}

// TestKitIsNoted: what the group knows of a kit is in its status, with what it lacks, and no kit is no alarm.
func TestKitIsNoted(t *testing.T) {
	c := config(t)
	a, _ := start(t, c)
	ready(t, a)
	if alarms := a.kitAlarm(); len(alarms) > 0 {
		t.Errorf("without a kit: %+v", alarms)
	}
	client := api.NewClient(c.Admin.Socket)
	defer client.Close()
	if err := client.NoteKit(t.Context(), api.Kit{Places: map[string]string{"a": "elsewhere"}}); err != nil {
		t.Fatal(err)
	}
	until(t, a, "the status warns", func() bool {
		o, err := client.Overview(t.Context())
		if err != nil || o.Kit == nil || o.Kit.Made == nil {
			return false
		}
		for _, x := range o.Alarms {
			if x.Kind == "kit" {
				return strings.Contains(x.Text, "storage a is in another place now; storage b is newer; node n1 is newer")
			}
		}
		return false
	})
}
