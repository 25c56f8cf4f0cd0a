package storagetest

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// lateOwnerIsRefused: a Put whose reader has reached its end long after another has made the object is refused, whatever it
// had sent already, and equal contents make no difference. That is what keeps a reverted backup away for good.
func lateOwnerIsRefused(t *testing.T, s storage.Storage) {
	for i, late := range []string{"late", "tombstone", strings.Repeat("late", 3*mib)} {
		name := fmt.Sprintf("backup/%d/manifest", i)
		var tombstone storage.Info
		r := io.MultiReader(strings.NewReader(late), &whenRead{do: func() { tombstone = put(t, s, name, "tombstone") }})
		_, err := s.Put(t.Context(), name, r, storage.Condition{})
		wantErr(t, fmt.Sprintf("a put of %d bytes that ends late", len(late)), err, storage.ErrExists)
		if content, now := get(t, s, name); content != "tombstone" || now != tombstone {
			t.Errorf("there are %d bytes, %+v, want %+v", len(content), now, tombstone)
		}
	}
}

// whenRead is an empty reader that does something once.
type whenRead struct{ do func() }

func (e *whenRead) Read([]byte) (int, error) {
	if e.do != nil {
		e.do()
		e.do = nil
	}
	return 0, io.EOF
}
