package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

var now = time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)

func at(after time.Duration) *time.Time {
	t := now.Add(after)
	return &t
}

// full is a sample in which every metric has a value.
func full() Sample {
	left := int64(1000)
	return Sample{
		ClockAhead: -2 * time.Second,
		Usage: api.Usage{
			Storages:  []api.StorageUsage{{Storage: "disk", Bytes: 700, PerDay: 50, Free: &left}, {Storage: "nas", Bytes: 7}},
			Databases: []api.DatabaseUsage{{Database: "shop", Bytes: 707}},
		},
		Now: now,
		Overview: api.Overview{
			Status: api.Status{Node: "n1", Group: "shop", Version: "v1", Leader: "n1", View: 7, Lease: "held", Ready: true, CertificateUntil: at(time.Hour)}, Crew: api.Crew{Voters: 3, Present: 2},
			Alarms: []api.Alarm{{Kind: "backup", Severity: api.Critical}}, Fences: []api.Fence{{State: api.FenceRaised}, {State: api.FenceRaised}},
			Databases: []api.DatabaseState{
				{Name: "shop", State: api.BackupsOverdue, LastGood: at(-30 * time.Hour), RPOMS: (26 * time.Hour).Milliseconds(), Bytes: 1 << 20, Failed: "t1"},
				{Name: "new", State: api.BackupsNone},
			},
			Storages: []api.StorageState{{Name: "disk", State: "ready"}, {Name: "nas", State: "away"}, {Name: "box", State: "unknown"}},
		},
		Members:    []api.Member{{State: "ready"}, {State: "suspected"}},
		Components: []api.Component{{Name: "backup", Done: 3, Failed: 1, Paused: true}},
		Claims:     []api.Claim{{Component: "backup", State: "held"}},
		Tasks:      map[TaskKey]int{{"create", "uploading"}: 2},
		Raft:       Raft{Leads: true, Term: 2, Last: 9, Commit: 8, Applied: 7, Snapshot: 5, Followers: []Follower{{"n2", 4}}},
	}
}

func recovery(steps ...api.Step) api.Recovery {
	return api.Recovery{Component: "backup", Run: "aa", State: api.FenceRaised, Steps: append([]api.Step{{What: "closed", At: at(0)}}, steps...)}
}

// scraped is what /metrics answers of a node at which everything has happened once.
func scraped(t *testing.T) string {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	m, err := New(reg, func(context.Context) Sample { return full() })
	if err != nil {
		t.Fatal(err)
	}
	m.Closed("refused")
	old := recovery(api.Step{What: "raised", At: at(time.Second)})
	old.Run, old.Ended, old.State = "old", 9, "released"
	open := recovery()
	m.Recoveries([]api.Recovery{old, open}) // what was over before is not counted
	raised := recovery(api.Step{What: "raised", At: at(7 * time.Millisecond)}, api.Step{What: "raised", At: at(time.Hour)})
	m.Recoveries([]api.Recovery{old, raised})
	raised.Ended, raised.State = 12, "released"
	m.Recoveries([]api.Recovery{old, raised})
	m.Recoveries([]api.Recovery{old, raised}) // once
	m.Called("disk", "put", "ok")
	m.Called("disk", "put", "permanent")
	m.Put("disk", 10)
	m.Got("disk", 5)
	answer := httptest.NewRecorder()
	Handler(reg).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatal(answer.Code, answer.Body)
	}
	return answer.Body.String()
}

func TestWhatIsScraped(t *testing.T) {
	text := scraped(t)
	for _, want := range []string{
		`fencepost_info{group="shop",node="n1",version="v1"} 1`, "fencepost_ready 1", "fencepost_quorum 1", "fencepost_leads 1", "fencepost_view_version 7",
		`fencepost_lease{state="held"} 1`, `fencepost_lease{state="expired"} 0`,
		`fencepost_members{state="ready"} 1`, `fencepost_members{state="joined"} 0`, "fencepost_voters 3", "fencepost_voters_present 2", "fencepost_voters_spare 0",
		`fencepost_fences{state="raised"} 2`, `fencepost_fences{state="parked"} 0`, `fencepost_alarms{kind="backup",severity="critical"} 1`,
		`fencepost_claims{component="backup",state="held"} 1`, `fencepost_tasks{state="uploading",type="create"} 2`,
		`fencepost_component_items_total{component="backup",result="failed"} 1`, `fencepost_component_paused{component="backup"} 1`,
		"fencepost_raft_term 2", "fencepost_raft_applied_index 7", `fencepost_raft_follower_behind_entries{follower="n2"} 4`,
		`fencepost_backup_age_seconds{database="shop"} 108000`, `fencepost_backup_rpo_seconds{database="shop"} 93600`,
		`fencepost_backup_overdue{database="shop"} 1`, `fencepost_backup_overdue{database="new"} 0`, `fencepost_backup_failed{database="shop"} 1`,
		fmt.Sprintf("fencepost_certificate_expiry_timestamp_seconds %g", float64(at(time.Hour).Unix())),
		"fencepost_clock_offset_seconds -2", `fencepost_storage_used_bytes{storage="disk"} 700`, `fencepost_storage_free_bytes{storage="disk"} 1000`,
		`fencepost_storage_growth_bytes{storage="disk"} 50`, `fencepost_database_used_bytes{database="shop"} 707`,
		`fencepost_storage_up{storage="disk"} 1`, `fencepost_storage_up{storage="nas"} 0`,
		`fencepost_closed_runs_total{evidence="refused"} 1`, `fencepost_recoveries_total{component="backup",result="released"} 1`,
		`fencepost_close_to_fence_seconds_count{component="backup"} 1`, `fencepost_close_to_fence_seconds_sum{component="backup"} 0.007`,
		`fencepost_storage_calls_total{call="put",result="permanent",storage="disk"} 1`,
		`fencepost_storage_transferred_bytes_total{direction="put",storage="disk"} 10`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	for _, not := range []string{`fencepost_storage_up{storage="box"}`, `fencepost_backup_age_seconds{database="new"}`, `fencepost_storage_free_bytes{storage="nas"}`} {
		if strings.Contains(text, not) {
			t.Errorf("%s is told, and nobody knows it", not)
		}
	}
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "fencepost_") {
			t.Errorf("a line of nobody: %s", line)
		}
	}
}

// TestAlertsAndDashboardNameWhatThereIs: each metric in the example files exists, and each of the files is whole.
func TestAlertsAndDashboardNameWhatThereIs(t *testing.T) {
	text := scraped(t)
	var known []string
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`).FindAllStringSubmatch(text, -1) {
		known = append(known, m[1])
		if m[2] == "histogram" {
			known = append(known, m[1]+"_bucket", m[1]+"_sum", m[1]+"_count")
		}
	}
	used := 0
	for _, name := range []string{"alerts.example.yml", "grafana.example.json"} {
		file, err := os.ReadFile(filepath.Join("../../../configs", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, metric := range regexp.MustCompile(`fencepost_[a-z_]+`).FindAllString(string(file), -1) {
			used++
			if !slices.Contains(known, metric) {
				t.Errorf("%s: there is no metric %s", name, metric)
			}
		}
		if strings.HasSuffix(name, ".json") && !json.Valid(file) {
			t.Errorf("%s is not valid JSON", name)
		}
		if strings.Contains(string(file), "\t") {
			t.Errorf("%s: tabs are not allowed in YAML", name)
		}
	}
	if used < 30 {
		t.Errorf("only %d metrics are used: were the files read?", used)
	}
}

// TestEveryAlertSaysWhatToDo: a rule has an expression, a severity and a summary.
func TestEveryAlertSaysWhatToDo(t *testing.T) {
	file, err := os.ReadFile("../../../configs/alerts.example.yml")
	if err != nil {
		t.Fatal(err)
	}
	rules := strings.Split(string(file), "- alert: ")[1:]
	if len(rules) < 10 {
		t.Fatalf("%d rules", len(rules))
	}
	for _, rule := range rules {
		name, _, _ := strings.Cut(rule, "\n")
		for _, key := range []string{"expr: ", "severity: ", "summary: ", "description: "} {
			if strings.Count(rule, key) != 1 {
				t.Errorf("%s: %s is there %d times", name, key, strings.Count(rule, key))
			}
		}
		if strings.Count(rule, "(") != strings.Count(rule, ")") || strings.Count(rule, "{") != strings.Count(rule, "}") {
			t.Errorf("%s: brackets do not match", name)
		}
	}
}

func TestProbe(t *testing.T) {
	for _, test := range []struct {
		reasons []string
		code    int
		body    string
	}{
		{nil, http.StatusOK, `{"ok":true,"reasons":[]}`},
		{[]string{"it joins"}, http.StatusServiceUnavailable, `{"ok":false,"reasons":["it joins"]}`},
	} {
		answer := httptest.NewRecorder()
		Probe(func(context.Context) []string { return test.reasons }).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if answer.Code != test.code || strings.TrimSpace(answer.Body.String()) != test.body {
			t.Errorf("%d %s", answer.Code, answer.Body)
		}
	}
}
