package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// TestRoutes calls everything once through the client.
func TestRoutes(t *testing.T) {
	f := newFake()
	f.set(api.Task{ID: "t 1/x", Database: "shop"})
	_, c, _ := serve(t, f.backend())
	ctx := t.Context()
	check := func(what string, got any, err error, want any) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	status, err := c.Status(ctx)
	check("status", status.Node, err, "n1")
	members, err := c.Members(ctx)
	check("members", len(members), err, 2)
	view, err := c.View(ctx)
	check("view", view.Version, err, uint64(7))
	fences, err := c.Fences(ctx)
	check("fences", fences, err, []api.Fence{})
	recoveries, err := c.Recoveries(ctx)
	check("recoveries", recoveries[0].Token, err, uint64(1)<<52)
	tasks, err := c.Tasks(ctx, api.TaskFilter{Active: true, Internal: true, Database: "a&b", Limit: 3})
	check("tasks", len(tasks), err, 1)
	check("filter", f.filter, nil, api.TaskFilter{Active: true, Internal: true, Database: "a&b", Limit: 3})
	task, err := c.Task(ctx, "t 1/x")
	check("task with an odd id", task.Database, err, "shop")
	cancelled, err := c.Cancel(ctx, "t 1/x")
	check("cancel", cancelled.CancelRequested, err, true)
	backups, err := c.Backups(ctx, api.BackupFilter{Database: "shop"})
	check("backups", backups[0].Database, err, "shop")
	backup, err := c.Backup(ctx, "b1")
	check("backup", backup.ID, err, "b1")
	created, err := c.CreateBackup(ctx, api.CreateBackup{Database: "shop", Storages: []string{"a"}})
	check("create", created.Storages, err, []string{"a"})
	want := api.RestoreBackup{Backup: "b1", Target: "copy", Replace: true, Storage: "a"}
	_, err = c.Restore(ctx, want)
	check("restore", f.restores, err, []api.RestoreBackup{want})
	gone, err := c.DeleteBackup(ctx, "b1", api.DeleteBackup{Now: true})
	check("delete", gone.Backup+" "+gone.Type, err, "b1 delete")
	back, err := c.UndeleteBackup(ctx, "b1")
	check("undelete", back.ID, err, "b1")
	yes, note := true, "n"
	marked, err := c.MarkBackup(ctx, "b1", api.MarkBackup{Pinned: &yes, Note: &note})
	check("mark", []any{marked.Pinned, marked.Accepted, marked.Note}, err, []any{true, false, "n"})
	if _, err := c.MarkBackup(ctx, "b1", api.MarkBackup{}); err == nil {
		t.Error("a mark that changes nothing was accepted")
	}
	checked, err := c.VerifyBackup(ctx, "b1", api.VerifyBackup{Scratch: "lab"})
	check("verify", checked.Target, err, "lab")
	copied, err := c.ReplicateBackup(ctx, "b1", api.ReplicateBackup{Storages: []string{"a"}})
	check("replicate", copied.Storages, err, []string{"a"})
	name := api.RecoveryName{Component: "backup", Run: "ab"}
	retried, err := c.RetryRecovery(ctx, name)
	check("retry", retried.State, err, api.FenceAppointed)
	dropped, err := c.DropRecovery(ctx, api.DropRecovery{RecoveryName: name, Why: "gone"})
	check("drop", dropped.Run+" "+dropped.Problem, err, "ab gone")
	fence := api.FenceName{Component: "backup", Node: "n2"}
	raised, err := c.RaiseFence(ctx, fence)
	check("raise", raised.Token, err, uint64(7))
	lowered, err := c.LowerFence(ctx, api.LowerFence{FenceName: fence, Token: 7})
	check("lower", lowered.State, err, api.FenceLowered)
	forced, err := c.LowerFence(ctx, api.LowerFence{FenceName: fence, Token: 9, Force: true, Why: "hung"})
	check("force", forced.State+" "+forced.Problem, err, "appointed hung")
	forgotten, err := c.ForgetNode(ctx, api.NodeName{Node: "n3"})
	check("forget", forgotten, err, api.Node{Node: "n3", State: api.NodeForgotten})
	replaced, err := c.ReplaceNode(ctx, api.NodeName{Node: "n3"})
	check("replace", replaced, err, api.Node{Node: "n3", State: api.NodeReplaceable})
	numbers, err := c.Rebase(ctx, api.Rebase{Above: 8, Why: "rolled back"})
	check("rebase", numbers, err, api.Numbers{Base: 9, Position: 10, Token: 9, Before: 5})
	upgrade, err := c.Upgrade(ctx)
	check("upgrade", upgrade, err, api.Upgrade{Protocol: 1, Next: 2, Programs: []api.Program{{Node: "n/3", Version: "v1", Protocol: 2, Here: true}}, Against: []string{}})
	upgrade, err = c.FinalizeUpgrade(ctx, api.FinalizeUpgrade{Without: []string{"n/3"}})
	check("finalize", upgrade, err, api.Upgrade{Protocol: 2, Next: 2, Programs: []api.Program{}, Against: []string{"n/3"}})
	draining, err := c.DrainNode(ctx, api.NodeName{Node: "n/3"})
	check("drain", draining.Node+" "+draining.State, err, "n/3 draining")
	drained, err := c.Drain(ctx, "n/3")
	check("drained", drained.Node+" "+drained.State, err, "n/3 drained")
	removing, err := c.RemoveNode(ctx, api.NodeName{Node: "n/3"})
	check("remove", removing.Node+" "+removing.State, err, "n/3 draining")
	removal, err := c.Removal(ctx, "n/3")
	check("removal", removal.Node+" "+removal.State, err, "n/3 kept")
	works, err := c.UndrainNode(ctx, api.NodeName{Node: "n3"})
	check("undrain", works.State, err, "working")
	may, err := c.MayRestart(ctx, "n/3")
	check("may restart", may, err, api.MayRestart{Node: "n/3", Why: []string{"no"}})
	for _, f := range []func(context.Context, api.NodeName) (api.Drain, error){c.DrainNode, c.UndrainNode} {
		if _, err := f(ctx, api.NodeName{}); err == nil {
			t.Error("a drain that names no node was accepted")
		}
	}
	for _, f := range []func(context.Context, api.NodeName) (api.Node, error){c.ForgetNode, c.ReplaceNode} {
		if _, err := f(ctx, api.NodeName{}); err == nil {
			t.Error("a request that names no node was accepted")
		}
	}
}

// TestDecisionsNameWhatTheyMean: nothing is decided by a request that leaves out what it is about.
func TestDecisionsNameWhatTheyMean(t *testing.T) {
	_, c, _ := serve(t, newFake().backend())
	ctx, name, fence := t.Context(), api.RecoveryName{Component: "backup", Run: "ab"}, api.FenceName{Component: "backup", Node: "n2"}
	for what, do := range map[string]func() error{
		"component": func() error { _, err := c.RetryRecovery(ctx, api.RecoveryName{Run: "ab"}); return err },
		"run": func() error {
			_, err := c.DropRecovery(ctx, api.DropRecovery{RecoveryName: api.RecoveryName{Component: "backup"}})
			return err
		},
		"why":    func() error { _, err := c.DropRecovery(ctx, api.DropRecovery{RecoveryName: name}); return err },
		"no why": func() error { _, err := c.Rebase(ctx, api.Rebase{Above: 8}); return err },
		"node":   func() error { _, err := c.RaiseFence(ctx, api.FenceName{Component: "backup"}); return err },
		"token":  func() error { _, err := c.LowerFence(ctx, api.LowerFence{FenceName: fence, Force: true}); return err },
	} {
		var e *api.Error
		if err := do(); !errors.As(err, &e) || e.Code != api.CodeUsage || !strings.Contains(e.Message, what) {
			t.Errorf("without its %s: %v", what, err)
		}
	}
}

// TestErrorsTravel: codes, sentences and hints arrive as they were sent.
func TestErrorsTravel(t *testing.T) {
	known := errors.New("the target is there")
	var logged bytes.Buffer
	f := newFake()
	b := f.backend()
	b.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	b.Translate = func(err error) *api.Error {
		if errors.Is(err, known) {
			return &api.Error{Code: api.CodeConflict, Message: err.Error(), Hint: "use --replace"}
		}
		return nil
	}
	_, c, _ := serve(t, b)
	for _, x := range []struct {
		err    error
		want   api.Error
		logged bool
	}{
		{fmt.Errorf("restore: %w", known), api.Error{Code: api.CodeConflict, Message: "restore: the target is there", Hint: "use --replace"}, false},
		{&api.Error{Code: api.CodeBusy, Message: "busy"}, api.Error{Code: api.CodeBusy, Message: "busy"}, false},
		{fmt.Errorf("deep: %w", &api.Error{Code: api.CodeLeaseLost, Message: "lost", Hint: "wait"}), api.Error{Code: api.CodeLeaseLost, Message: "lost", Hint: "wait"}, false},
		{context.DeadlineExceeded, api.Error{Code: api.CodeUnavailable, Message: "the daemon could not answer in time: context deadline exceeded", Hint: "try again"}, false},
		{errors.New("no idea"), api.Error{Code: api.CodeFailed, Message: "no idea"}, true},
	} {
		f.err = x.err
		logged.Reset()
		_, err := c.CreateBackup(t.Context(), api.CreateBackup{Database: "shop"})
		var got *api.Error
		if !errors.As(err, &got) || *got != x.want {
			t.Errorf("%v arrived as %#v", x.err, err)
		}
		if (logged.Len() > 0) != x.logged {
			t.Errorf("%v: logged %q", x.err, logged.String())
		}
	}
}

// TestBadRequests are refused with code usage or not_found, as JSON.
func TestBadRequests(t *testing.T) {
	_, _, socket := serve(t, newFake().backend())
	post := func(path, body string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
	}
	get := func(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" }
	for _, x := range []struct{ name, request, want string }{
		{"no database", post("/api/v1/backups", `{}`), `400.*"detail":"no database was named","code":"usage"`},
		{"empty body", post("/api/v1/backups", ``), `"detail":"no database was named"`},
		{"unknown wish", post("/api/v1/backups", `{"database":"a","encrypt":true}`), `400.*encrypt.*"code":"usage"`},
		{"two values", post("/api/v1/backups", `{"database":"a"}{}`), `400.*more than one`},
		{"a form", strings.Replace(post("/api/v1/backups", `{"database":"a"}`), "application/json", "text/plain", 1), `415.*"code":"unsupported"`},
		{"no JSON", post("/api/v1/backups", `database=a`), `400.*"code":"usage"`},
		{"two backups", post("/api/v1/backups/b1/restore", `{"backup":"b2"}`), `400.*name different backups`},
		{"too long", post("/api/v1/backups", `{"database":"`+strings.Repeat("a", maxBody)+`"}`), `413.*"code":"too_large"`},
		{"bad filter", get("/api/v1/tasks?active=maybe"), `400.*"detail":"query active: want true or false"`},
		{"bad limit", get("/api/v1/backups?limit=-1"), `400.*"detail":"query limit: want a number from 0"`},
		{"bad wait", get("/api/v1/view?wait=long"), `400.*query wait`},
		{"negative wait", get("/api/v1/view?wait=-1s"), `400.*query wait`},
		{"unknown task", get("/api/v1/tasks/none"), `404.*"code":"not_found"`},
		{"unknown path", get("/v2/view"), `404.*GET /v2/view.*"code":"not_found"`},
		{"unknown method", strings.Replace(get("/api/v1/view"), "GET", "DELETE", 1), `405.*Allow: GET.*DELETE /api/v1/view`},
	} {
		t.Run(x.name, func(t *testing.T) {
			got := raw(t, socket, x.request)
			rest := got
			for part := range strings.SplitSeq(x.want, ".*") {
				_, after, found := strings.Cut(rest, part)
				if !found {
					t.Fatalf("answer %q, want %q in it", got, x.want)
				}
				rest = after
			}
			if !strings.Contains(got, "Content-Type: application/problem+json") {
				t.Errorf("answer %q is no problem", got)
			}
		})
	}
}
