package kept

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestMemory holds what a Store promises: versions decide, a commit is whole or nothing.
func TestMemory(t *testing.T) {
	var m Memory
	ctx := t.Context()
	if err := m.Commit(ctx, Put("a/1", "x", 0), Put("a/2", "y", 0), Put("b", "z", 0)); err != nil {
		t.Fatal(err)
	}
	if err := m.Commit(ctx, Put("a/3", nil, 0), Put("a/1", "again", 0)); !errors.Is(err, ErrConflict) {
		t.Fatalf("a record that is there was made: %v", err)
	}
	list, err := m.List(ctx, "a/")
	if err != nil || len(list) != 2 || list[0].Key != "a/1" || string(list[0].Value) != `"x"` {
		t.Fatalf("%v, %v", list, err)
	}
	if err := m.Commit(ctx, Delete(list[0])); err != nil {
		t.Fatal(err)
	}
	if err := m.Commit(ctx, Delete(list[0])); !errors.Is(err, ErrConflict) {
		t.Fatalf("deleted twice: %v", err)
	}
	if r := m.Local("a/1"); r.Version != 0 || r.Value != nil {
		t.Fatalf("a deleted record is %+v", r)
	}
	broken := errors.New("no quorum")
	m.Fail(broken)
	if _, err := m.Get(ctx, "b"); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if m.Local("b").Version == 0 {
		t.Error("what is known locally is not known")
	}
}

// TestUpdate: nobody's change is lost, however many come at once.
func TestUpdate(t *testing.T) {
	var m Memory
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			err := Update(t.Context(), &m, "n", func(r Record) ([]Change, error) {
				n, _ := strconv.Atoi(string(r.Value)) // empty at first
				return []Change{Put("n", n+1, r.Version)}, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := string(m.Local("n").Value); got != "8" {
		t.Errorf("8 increments made %s", got)
	}
	refused := errors.New("refused")
	if err := Update(t.Context(), &m, "n", func(Record) ([]Change, error) { return nil, refused }); !errors.Is(err, refused) {
		t.Errorf("a refusal became %v", err)
	}
}

// rival is a store in which somebody else is always faster.
type rival struct{ Memory }

func (r *rival) Commit(context.Context, ...Change) error { return ErrConflict }

// TestUpdateEnds: when somebody else is faster each time Update ends, and says so; or when nobody waits for it any more.
func TestUpdateEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		decide := func(Record) ([]Change, error) { tries++; return []Change{Put("n", nil, 0)}, nil }
		if err := Update(t.Context(), &rival{}, "n", decide); !errors.Is(err, ErrConflict) || tries != mostTries {
			t.Errorf("%v after %d tries", err, tries)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
		defer cancel()
		if err := Update(ctx, &rival{}, "n", decide); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
