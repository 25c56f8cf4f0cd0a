package cli

import (
	"context"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

func (f *fake) TryStorage(_ context.Context, name string) (api.Tried, error) {
	if name == "nas" {
		return api.Tried{Name: name, Node: "n1", Found: "read: input/output error", Hint: "look at the disk", Steps: []api.TryStep{{Step: "write", TookMS: 3}, {Step: "read", TookMS: 12, Problem: "input/output error"}}, Left: []string{"storage-test-1/a"}}, nil
	}
	return api.Tried{Name: name, Node: "n1", Good: true, Found: "it can be written, read and listed", Steps: []api.TryStep{{Step: "write", TookMS: 3}, {Step: "read", TookMS: 1}}}, nil
}

func (f *fake) TryDatabase(_ context.Context, name string) (api.Tried, error) {
	if name == "shop" {
		return api.Tried{Name: name, Node: "n1", Good: true, Found: "server 15.18, program 15.18, all of it may be read"}, nil
	}
	return api.Tried{Name: name, Node: "n1", Found: "connection refused", Hint: "look at its dsn"}, nil
}

func (f *fake) Manifest(_ context.Context, id, storage string) (api.Manifest, error) {
	return api.Manifest{Backup: id, Token: 69, Storage: storage, Object: id + "/0000000000000069/manifest.json", Manifest: []byte(`{"format":2,"backup":"b1"}`)}, nil
}
