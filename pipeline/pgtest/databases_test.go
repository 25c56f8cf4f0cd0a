package pgtest

import (
	"slices"
	"testing"
)

// TestDatabases: what was created is listed, whatever its name, and cannot be created twice.
func TestDatabases(t *testing.T) {
	s := shared.Server(t)
	const odd = `Größe "x" of 'y'`
	dsn, err := s.CreateDatabase(t.Context(), odd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Exec(t, "postgres", "DROP DATABASE "+quote(odd)) })
	if err := Sample(t.Context(), dsn, 1); err != nil {
		t.Fatal(err)
	}
	names, err := s.Databases(t.Context())
	if err != nil || !slices.Contains(names, odd) || !slices.Contains(names, "postgres") || slices.Contains(names, "template1") || !slices.IsSorted(names) {
		t.Fatalf("databases %q, error %v", names, err)
	}
	if _, err := s.CreateDatabase(t.Context(), odd); err == nil {
		t.Fatal("created twice")
	}
}
