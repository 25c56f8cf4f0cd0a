package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/metrics"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/mem"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

func probe(a *App, path string) (int, string) {
	answer := httptest.NewRecorder()
	a.probes().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	return answer.Code, answer.Body.String()
}

// TestProbes: a node that works says so, one that cannot go on says why, and what it has done to its storages is counted.
func TestProbes(t *testing.T) {
	c := config(t)
	a, stop := start(t, c)
	ready(t, a)
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, body := probe(a, path); code != http.StatusOK || !strings.Contains(body, `"ok":true`) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	client := api.NewClient(c.Admin.Socket)
	defer client.Close()
	if _, err := client.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	code, text := probe(a, "/metrics")
	for _, want := range []string{
		`fencepost_info{group="fencepost",node="n1",version="test"} 1`, `fencepost_members{state="ready"} 1`, "fencepost_leads 1", "fencepost_quorum 1",
		`fencepost_component_items_total{component="backup",result="done"} 0`, `fencepost_backup_overdue{database="shop"} 0`,
		`fencepost_storage_calls_total{call="put",result="ok",storage="a"}`, "go_goroutines", "fencepost_clock_offset_seconds 0", `fencepost_storage_free_bytes{storage="b"}`,
	} {
		if code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%d: no %s", code, want)
		}
	}
	if code, body := probe(a, "/v1/status"); code != http.StatusNotFound {
		t.Errorf("nothing else is behind the probes: %d %s", code, body)
	}
	a.setState("waiting at the fence")
	if code, body := probe(a, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "waiting at the fence") {
		t.Errorf("%d %s", code, body)
	}
	a.setState("ready")
	a.fail(errors.New("the disk stalls"))
	if code, body := probe(a, "/healthz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "the disk stalls") {
		t.Errorf("%d %s", code, body)
	}
	stop()
}

// TestMeteredStorage: what is counted is what happened, and the storage below is as before.
func TestMeteredStorage(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, err := metrics.New(reg, func(context.Context) metrics.Sample { return metrics.Sample{} })
	if err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	s := meter(storagetest.Inject(mem.New(), storagetest.Fail(storagetest.Delete, boom)), "disk", m)
	ctx := t.Context()
	if _, err := s.Put(ctx, "a", bytes.NewReader(make([]byte, 1000)), storage.Condition{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(ctx, "a", bytes.NewReader(make([]byte, 1000)), storage.Condition{}); !errors.Is(err, storage.ErrExists) {
		t.Error(err)
	}
	r, _, err := s.Get(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, r, 400); err != nil {
		t.Error(err)
	}
	if err := errors.Join(r.Close(), r.Close()); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Get(ctx, "b"); !errors.Is(err, storage.ErrNotFound) {
		t.Error(err)
	}
	if err := s.Delete(ctx, "a"); !errors.Is(err, boom) {
		t.Error(err)
	}
	for _, err := range s.List(ctx, "") {
		if err != nil {
			t.Error(err)
		}
	}
	answer := httptest.NewRecorder()
	metrics.Handler(reg).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{"put,ok", "put,exists", "get,ok", "get,missing", "delete,passing", "list,ok"} {
		call, result, _ := strings.Cut(want, ",")
		if line := fmt.Sprintf("fencepost_storage_calls_total{call=%q,result=%q,storage=\"disk\"} 1\n", call, result); !strings.Contains(answer.Body.String(), line) {
			t.Errorf("no %s", line)
		}
	}
	for direction, n := range map[string]int{"put": 1000, "get": 400} {
		if line := fmt.Sprintf("fencepost_storage_transferred_bytes_total{direction=%q,storage=\"disk\"} %d\n", direction, n); !strings.Contains(answer.Body.String(), line) {
			t.Errorf("no %s in %s", line, answer.Body)
		}
	}
}

// TestMeteredStorageIsAStorage: it passes what every storage must.
func TestMeteredStorageIsAStorage(t *testing.T) {
	m, err := metrics.New(prometheus.NewRegistry(), func(context.Context) metrics.Sample { return metrics.Sample{} })
	if err != nil {
		t.Fatal(err)
	}
	storagetest.Run(t, func(*testing.T) storage.Storage { return meter(mem.New(), "mem", m) }, storagetest.InMemory)
}
