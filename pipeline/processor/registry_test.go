package processor_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/pipeline/processor"
)

func TestRegistryRefuses(t *testing.T) {
	if _, err := processor.NewRegistry(tagged{name: "a"}, tagged{name: "a", precedence: 2}); err == nil {
		t.Error("two processors of one name were taken")
	}
	if _, err := processor.NewRegistry(tagged{}); err == nil {
		t.Error("a processor without a name was taken")
	}
	if _, err := processor.NewRegistry(tagged{name: "a", precedence: 1}, tagged{name: "b", precedence: 1}); err != nil {
		t.Errorf("alternatives of one precedence were refused: %v", err)
	}
}

func TestFindNamesWhatIsKnown(t *testing.T) {
	registry, err := processor.NewRegistry(tagged{name: "zstd"}, tagged{name: "age"})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := registry.Find("age"); err != nil || p.Name() != "age" {
		t.Errorf("got %v, %v", p, err)
	}
	_, err = registry.Find("gzip")
	if want := `unknown processor "gzip" (known: age, zstd)`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := processor.Registry(nil).Find("x"); err == nil || !strings.Contains(err.Error(), "known: none") {
		t.Errorf("got %v", err)
	}
}

func TestChainOrdersAndRefuses(t *testing.T) {
	registry, err := processor.NewRegistry(tagged{name: "age", precedence: 50}, tagged{name: "zstd", precedence: 100}, tagged{name: "gzip", precedence: 100})
	if err != nil {
		t.Fatal(err)
	}
	chain, err := registry.Chain([]string{"age", "zstd"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"zstd", "age"}, processor.Names(chain)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, names := range [][]string{{"zstd", "gzip"}, {"zstd", "zstd"}, {"zstd", "lz4"}} {
		if _, err := registry.Chain(names); err == nil {
			t.Errorf("chain %v was accepted", names)
		}
	}
}

func TestUnwrapAllRefusesAndReleases(t *testing.T) {
	var log []string
	boom := errors.New("wrong key")
	registry, err := processor.NewRegistry(
		tagged{name: "age", precedence: 50, log: &log},
		tagged{name: "zstd", precedence: 100, log: &log},
		tagged{name: "bad", precedence: 70, log: &log, wrapErr: boom})
	if err != nil {
		t.Fatal(err)
	}
	in := strings.NewReader("")
	if _, err := registry.UnwrapAll([]string{"bad", "age"}, in); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string{"close age"}, log); diff != "" {
		t.Errorf("the layer that had started was not released (-want +got):\n%s", diff)
	}
	for _, names := range [][]string{{"lz4"}, {"lz4", "age"}, {"age", "age"}} {
		if _, err := registry.UnwrapAll(names, in); err == nil {
			t.Errorf("names %v were accepted", names)
		}
	}
}

func TestReaderCloseReleasesAllAndReportsTheFirstError(t *testing.T) {
	var log []string
	first, second := errors.New("first"), errors.New("second")
	registry, err := processor.NewRegistry(
		tagged{name: "age", precedence: 50, log: &log, closeErr: second},
		tagged{name: "zstd", precedence: 100, log: &log, closeErr: first})
	if err != nil {
		t.Fatal(err)
	}
	r, err := registry.UnwrapAll([]string{"zstd", "age"}, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Close(); !errors.Is(err, first) {
			t.Errorf("got %v", err)
		}
	}
	if diff := cmp.Diff([]string{"close zstd", "close age"}, log); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
