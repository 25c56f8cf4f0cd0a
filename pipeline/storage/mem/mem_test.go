package mem_test

import (
	"io"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/mem"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(*testing.T) storage.Storage { return mem.New() }, storagetest.InMemory)
}

func TestHandlesOfOneNameAreOneStore(t *testing.T) {
	stores := mem.NewRegistry()
	a, b, other := stores.Open("disk"), stores.Open("disk"), stores.Open("other")
	if _, err := a.Put(t.Context(), "o", strings.NewReader("x"), storage.Condition{}); err != nil {
		t.Fatal(err)
	}
	r, _, err := b.Get(t.Context(), "o")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "x" {
		t.Errorf("got %q, %v", got, err)
	}
	for info := range other.List(t.Context(), "") {
		t.Errorf("the other store shows %s", info.Name)
	}
}
