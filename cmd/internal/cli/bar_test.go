package cli

import (
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

func TestBarOf(t *testing.T) {
	running := func(p api.Progress) api.Task { return api.Task{State: "uploading", Progress: p} }
	for name, c := range map[string]struct {
		task    api.Task
		columns int
		want    string
	}{
		"half":            {running(api.Progress{Read: 50 << 20, Estimate: 100 << 20}), 80, "[===============               ] 50%  50.0 MiB of about 100.0 MiB"},
		"with a rate":     {running(api.Progress{Read: 1 << 20, Estimate: 4 << 20, Rate: 1 << 20, LeftMS: 3000}), 100, "[=======                       ] 25%  1.0 MiB of about 4.0 MiB, 1.0 MiB/s, about 3s left"},
		"more than meant": {running(api.Progress{Read: 3 << 20, Estimate: 2 << 20}), 80, "[============================= ] 99%  3.0 MiB of about 2.0 MiB"},
		"no estimate":     {running(api.Progress{Read: 1 << 20, Rate: 2 << 20}), 80, "1.0 MiB, 2.0 MiB/s"},
		"narrow":          {running(api.Progress{Read: 50 << 20, Estimate: 100 << 20}), 40, "[===============               ] 50%  5"},
		"too narrow":      {running(api.Progress{Read: 1}), 10, ""},
		"no terminal":     {running(api.Progress{Read: 1}), 0, ""},
		"nothing yet":     {running(api.Progress{Estimate: 5}), 80, ""},
		"done":            {api.Task{Final: true, Progress: api.Progress{Read: 5}}, 80, ""},
	} {
		if got := barOf(c.task, c.columns); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The bar is drawn in its own line, which goes before anything else is said and at the end.
func TestProgressBar(t *testing.T) {
	var out strings.Builder
	bar := progressBar{w: &out, columns: 60}
	bar.clear()
	bar.draw(api.Task{Progress: api.Progress{Read: 1024}})
	bar.draw(api.Task{Progress: api.Progress{Read: 2048}})
	bar.clear()
	bar.clear()
	if got, want := out.String(), "1.0 KiB\r\x1b[K2.0 KiB\r\x1b[K"; got != want {
		t.Errorf("drawn %q, want %q", got, want)
	}
}
