package s3

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Storage { return fresh(t) }, storagetest.ContentVersions)
}

// The whole suite while requests meet each kind of fault that passes: not sent, not answered, refused.
func TestConformanceUnderMixedFaults(t *testing.T) {
	kinds := []func(func() (*http.Response, error)) (*http.Response, error){unsent, unanswered, refused}
	struck := make([]atomic.Int64, len(kinds))
	var requests atomic.Int64
	storagetest.Run(t, func(t *testing.T) storage.Storage {
		s, f := faulty(t, options(t))
		f.set(func(_ *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			n := requests.Add(1)
			if n%40 != 0 {
				return send()
			}
			i := n / 40 % int64(len(kinds))
			struck[i].Add(1)
			return kinds[i](send)
		})
		return s
	}, storagetest.ContentVersions)
	for i := range struck {
		if struck[i].Load() == 0 {
			t.Errorf("fault %d struck nobody in %d requests", i, requests.Load())
		}
	}
}
