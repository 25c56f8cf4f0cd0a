//go:build unix

package web

import (
	"io"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// BenchmarkOverview asks for the overview over one connection that is kept, as an impatient script does, through the whole
// front: log-in, policy, page. Both ends are in this process: core-% is what a thousand requests a second would cost them
// together, of one core.
func BenchmarkOverview(b *testing.B) {
	s := serve(b, fullSample())
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	q := s.request(b, http.MethodGet, "/", api.RoleViewer, nil)
	spent := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := spent()
	for b.Loop() {
		a, err := client.Do(q)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, a.Body); err != nil || a.StatusCode != http.StatusOK {
			b.Fatal(a.Status, err)
		}
		a.Body.Close()
	}
	b.ReportMetric(float64(spent()-before)/float64(b.N)*1000/float64(time.Second)*100, "core-%/1000/s")
}
