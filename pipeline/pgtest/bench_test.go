package pgtest

import "testing"

// BenchmarkSample makes the demo's 200 MB and reads them back as a fingerprint.
func BenchmarkSample(b *testing.B) {
	srv := shared.Server(b)
	const size = 200 << 20
	b.SetBytes(size)
	for b.Loop() {
		dsn := srv.Database(b)
		if err := Sample(b.Context(), dsn, size); err != nil {
			b.Fatal(err)
		}
		b.Logf("sample after %v, a dump of %d bytes", b.Elapsed(), dumpSize(b, dsn))
		if _, err := Fingerprint(b.Context(), dsn); err != nil {
			b.Fatal(err)
		}
		b.Logf("fingerprint after %v", b.Elapsed())
	}
}
