package postgres

import (
	"io"
	"testing"

	"github.com/fencepost/fencepost/pipeline/pgtest"
	"github.com/fencepost/fencepost/pipeline/source"
)

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// BenchmarkDumpRestore streams 200 MB from one database into a new one, without anything between.
func BenchmarkDumpRestore(b *testing.B) {
	srv := pg.Server(b)
	dsn := srv.Database(b)
	if err := pgtest.Sample(b.Context(), dsn, 200<<20); err != nil {
		b.Fatal(err)
	}
	s, err := New(Config{DSN: dsn})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		d, err := s.Dump(b.Context(), first)
		if err != nil {
			b.Fatal(err)
		}
		var n counter
		if err := d.Write(b.Context(), source.PartData, &n); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(n))
		b.Logf("dumped %d bytes after %v", n, b.Elapsed())
		r, err := s.Restore(b.Context(), first, source.RestoreOptions{Target: "bench", Info: d.Info()})
		if err != nil {
			b.Fatal(err)
		}
		pr, pw := io.Pipe()
		go func() { _ = pw.CloseWithError(d.Write(b.Context(), source.PartData, pw)) }()
		if err := r.Read(b.Context(), source.PartData, pr); err != nil {
			b.Fatal(err)
		}
		b.Logf("restored after %v", b.Elapsed())
		if err := r.Abort(); err != nil {
			b.Fatal(err)
		}
		_ = d.Close()
	}
}
