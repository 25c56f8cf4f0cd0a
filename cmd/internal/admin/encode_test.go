package admin

import (
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// TestNoNulls: lists and maps are never null, and what the backend keeps is not touched.
func TestNoNulls(t *testing.T) {
	kept := api.View{Members: []api.Member{{Node: "n1"}}}
	last := api.Schedule{Last: &api.Task{}}
	var noTasks []api.Task
	for _, encoded := range []func() ([]byte, error){
		func() ([]byte, error) { return encode(kept) },
		func() ([]byte, error) { return encode(noTasks) },
		func() ([]byte, error) { return encode([]api.Task{{}}) },
		func() ([]byte, error) { return encode([]api.Fence{{}}) },
		func() ([]byte, error) { return encode(api.Backup{}) },
		func() ([]byte, error) { return encode(api.Status{}) },
		func() ([]byte, error) { return encode(last) },
	} {
		text, err := encoded()
		if err != nil || strings.Contains(string(text), "null") {
			t.Errorf("%s (%v)", text, err)
		}
	}
	if kept.Members[0].Components != nil || last.Last.Storages != nil {
		t.Error("the backend's own list was changed")
	}
}
