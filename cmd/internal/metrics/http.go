package metrics

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler answers scrapes with what reg has. A collector that fails is an error of the whole scrape: half a picture would
// look like a healthy one. At most four scrapes run at the same time.
func Handler(reg prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError, MaxRequestsInFlight: 4})
}

// verdict is a probe's answer.
type verdict struct {
	OK      bool     `json:"ok"`
	Reasons []string `json:"reasons"` // why not; empty when it is
}

// Probe answers 200 when reasons has none, and 503 with them when it has, as {"ok": false, "reasons": [...]}. Reasons must
// hold nothing that a stranger may not read: whoever reaches the address may probe.
func Probe(reasons func(context.Context) []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := verdict{Reasons: append([]string{}, reasons(r.Context())...)}
		v.OK = len(v.Reasons) == 0
		body, err := json.Marshal(v)
		if err != nil {
			http.Error(w, "the answer could not be encoded", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		if !v.OK {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write(append(body, '\n')) // the prober may be gone; there is nobody to tell
	})
}
