package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/kept"
)

func at() time.Time { return time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC) }

func newTrail() (*Trail, *kept.Memory) {
	m := &kept.Memory{}
	return New(m, "n1", at), m
}

func appendTo(t testing.TB, trail *Trail, n int) {
	t.Helper()
	for i := range n {
		e := Entry{Actor: "ann", Action: "backup.create", Target: fmt.Sprint("b", i), Phase: Asked, Request: Redact([]byte(`{"database":"shop"}`))}
		if _, err := trail.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

// TestChain: numbers without gaps, each with the hash of the one before, whoever writes at once.
func TestChain(t *testing.T) {
	trail, _ := newTrail()
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			for done := 0; done < 5; {
				_, err := trail.Append(context.Background(), Entry{Actor: "ann", Action: "user.add", Phase: Done})
				if err == nil {
					done++
				} else if !errors.Is(err, kept.ErrConflict) {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	c, err := trail.Check(t.Context())
	if err != nil || !c.Whole || c.Records != 30 || c.First != 1 || c.Last != 30 {
		t.Fatalf("%+v, %v", c, err)
	}
	none, _ := newTrail()
	if c, err := none.Check(t.Context()); err != nil || !c.Whole {
		t.Errorf("an empty trail: %+v, %v", c, err)
	}
}

// TestChainTellsOfEveryChange: any field of any record altered, a record taken out, put in or moved is found.
func TestChainTellsOfEveryChange(t *testing.T) {
	trail, _ := newTrail()
	appendTo(t, trail, 6)
	whole, err := trail.all(t.Context())
	if err != nil || Check(whole) != nil {
		t.Fatal(err, Check(whole))
	}
	clone := func() []api.AuditRecord { return append([]api.AuditRecord{}, whole...) }
	for what, change := range map[string]func([]api.AuditRecord) []api.AuditRecord{
		"actor":  func(r []api.AuditRecord) []api.AuditRecord { r[2].Actor = "bob"; return r },
		"time":   func(r []api.AuditRecord) []api.AuditRecord { r[2].At = r[2].At.Add(time.Nanosecond); return r },
		"target": func(r []api.AuditRecord) []api.AuditRecord { r[2].Target = ""; return r },
		"request": func(r []api.AuditRecord) []api.AuditRecord {
			r[2].Request = json.RawMessage(`{"database":"shoq"}`)
			return r
		},
		"taken":    func(r []api.AuditRecord) []api.AuditRecord { return append(r[:2], r[3:]...) },
		"repeated": func(r []api.AuditRecord) []api.AuditRecord { return append(r[:3], r[2:]...) },
		"swapped":  func(r []api.AuditRecord) []api.AuditRecord { r[2], r[3] = r[3], r[2]; return r },
		"altered and hashed again": func(r []api.AuditRecord) []api.AuditRecord {
			r[2].Actor = "bob"
			r[2] = seal(r[2], r[1].Hash)
			return r
		},
		"taken and numbered again": func(r []api.AuditRecord) []api.AuditRecord {
			r = append(r[:2], r[3:]...)
			r[2].Seq = 3
			r[2] = seal(r[2], r[1].Hash)
			return r
		},
	} {
		if Check(change(clone())) == nil {
			t.Errorf("%s: nobody noticed", what)
		}
	}
}

// TestTrailKeepsTheLast, and tells when its own end or beginning is missing.
func TestTrailKeepsTheLast(t *testing.T) {
	trail, m := newTrail()
	appendTo(t, trail, Keep+3)
	c, err := trail.Check(t.Context())
	if err != nil || !c.Whole || c.Records != Keep || c.First != 4 || c.Last != Keep+3 {
		t.Fatalf("%+v, %v", c, err)
	}
	for _, seq := range []uint64{4, 500, Keep + 3} {
		r := m.Local(recordKey(seq))
		if err := m.Commit(t.Context(), kept.Delete(r)); err != nil {
			t.Fatal(err)
		}
		if c, err := trail.Check(t.Context()); err != nil || c.Whole || c.Problem == "" {
			t.Errorf("without record %d: %+v, %v", seq, c, err)
		}
		if err := m.Commit(t.Context(), kept.Put(r.Key, json.RawMessage(r.Value), 0)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFilter(t *testing.T) {
	trail, _ := newTrail()
	for i, e := range []Entry{{Actor: "ann", Action: "backup.create", Target: "a"}, {Actor: "bob", Action: "backup.delete", Target: "b"},
		{Actor: "ann", Action: "backups", Target: "a"}, {Actor: "ann", Action: "restore.create", Target: "b"}} {
		if r, err := trail.Append(t.Context(), e); err != nil || r.Seq != uint64(i+1) {
			t.Fatal(r.Seq, err)
		}
	}
	for want, f := range map[string]api.AuditFilter{
		"4321": {}, "431": {Actor: "ann"}, "21": {Action: "backup"}, "2": {Action: "backup.delete"}, "42": {Target: "b"},
		"43": {Limit: 2}, "21 ": {After: 3}, "3": {Actor: "ann", After: 4, Limit: 1}, "": {Actor: "eve"},
	} {
		list, err := trail.List(t.Context(), f)
		got := ""
		for _, r := range list {
			got += fmt.Sprint(r.Seq)
		}
		if err != nil || got != strings.TrimSpace(want) {
			t.Errorf("%+v: %s, want %s (%v)", f, got, want, err)
		}
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		`{"name":"ann","password":"pw"}`:                             `{"name":"ann","password":"***"}`,
		`{"secret_key":{"a":["x",1]},"dsn":"postgres://a:b@c"}`:      `{"dsn":"***","secret_key":{"a":["***",1]}}`,
		`{"token":9007199254740991,"keep":true,"Refresh_Token":"x"}`: `{"Refresh_Token":"***","keep":true,"token":9007199254740991}`,
		`{"password":""}`:                     `{"password":""}`,
		`{"fingerprint":"ab"}`:                `{"fingerprint":"ab"}`,
		``:                                    ``,
		`{}`:                                  ``,
		`{"a":`:                               `"not JSON"`,
		`"` + strings.Repeat("x", 3000) + `"`: `"too long to be recorded"`,
	} {
		if got := string(Redact([]byte(in))); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[a-z]{20}`).Draw(t, "secret")
		name := rapid.SampledFrom([]string{"password", "app_key", "SecretKey", "x_dsn", "api-token"}).Draw(t, "name")
		body, err := json.Marshal(map[string]any{"list": []any{map[string]any{name: map[string]string{"deep": secret}}}})
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(Redact(body), []byte(secret)) {
			t.Fatalf("%s shows %s", Redact(body), secret)
		}
	})
}

// TestCopy: a node's copy goes on where it was, survives a cut last line, says what it missed, and is found to be altered.
func TestCopy(t *testing.T) {
	trail, _ := newTrail()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var also int
	copyAll := func() {
		t.Helper()
		c, err := OpenCopy(trail, path, func([]byte) { also++ })
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.CatchUp(), c.CatchUp(), c.Close()); err != nil {
			t.Fatal(err)
		}
	}
	whole := func(records int, last uint64) {
		t.Helper()
		c, err := CheckCopy(path)
		if err != nil || !c.Whole || c.Records != records || c.Last != last {
			t.Fatalf("%+v, %v", c, err)
		}
	}
	appendTo(t, trail, 3)
	copyAll()
	whole(3, 3)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(path, text[:len(text)-9], 0o600); err != nil {
		t.Fatal(err)
	}
	appendTo(t, trail, 1)
	copyAll()
	whole(4, 4)
	if also != 5 {
		t.Errorf("%d lines went to the system's log, want 5: the cut one twice", also)
	}
	appendTo(t, trail, Keep+2)
	copyAll()
	whole(4+Keep, Keep+6)
	text, err = os.ReadFile(path)
	if err != nil || !bytes.Contains(text, []byte(`{"missed":{"from":5,"to":6}}`)) {
		t.Errorf("what was missed is not said: %v", err)
	}
	bad := bytes.Replace(text, []byte(`"target":"b7"`), []byte(`"target":"b8"`), 1)
	if err := os.WriteFile(path, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := CheckCopy(path); err != nil || c.Whole || !strings.Contains(c.Problem, "altered") {
		t.Errorf("an altered copy: %+v, %v", c, err)
	}
	if _, err := CheckCopy(path + ".none"); err == nil {
		t.Error("a copy that is not there is whole")
	}
}

// TestNoQuorum: what cannot be written down is an error, and is not there.
func TestNoQuorum(t *testing.T) {
	trail, m := newTrail()
	broken := errors.New("no quorum")
	m.Fail(broken)
	if _, err := trail.Append(t.Context(), Entry{Action: "x"}); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	m.Fail(nil)
	if list, err := trail.List(t.Context(), api.AuditFilter{}); err != nil || len(list) != 0 {
		t.Fatal(list, err)
	}
}

// TestManyAtOnce: the nodes of a group write at the same time, and so do many requests on each; none is told that others were
// faster.
func TestManyAtOnce(t *testing.T) {
	m := &kept.Memory{}
	const nodes, requests, each = 3, 8, 4
	var all sync.WaitGroup
	for n := range nodes {
		trail := New(m, fmt.Sprint("n", n), at)
		for range requests {
			all.Go(func() {
				for range each {
					if _, err := trail.Append(context.Background(), Entry{Actor: "ann", Action: "backup.create", Phase: Asked}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	if c, err := New(m, "n0", at).Check(t.Context()); err != nil || !c.Whole || c.Records != nodes*requests*each {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestTurn: who cannot write now is told so in its own time, and holds nobody up afterwards.
func TestTurn(t *testing.T) {
	trail, _ := newTrail()
	trail.turn <- struct{}{} // another is at it
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := trail.Append(ctx, Entry{Actor: "ann"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-trail.turn
	if _, err := trail.Append(t.Context(), Entry{Actor: "ann"}); err != nil {
		t.Error(err)
	}
}
