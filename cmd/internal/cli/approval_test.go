package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/admin"
	"github.com/fencepost/fencepost/cmd/internal/api"
)

// second is what takes a second person.
type second map[string]time.Duration

func (s second) ApprovalsNeeded(context.Context) (map[string]time.Duration, error) { return s, nil }

// TestApprovalByCommand: a command that takes a second person ends with the code of what needs somebody, names the request,
// and another person's command has it done.
func TestApprovalByCommand(t *testing.T) {
	f := newFake()
	store, _, trail := people(t)
	who := accounts.New(accounts.Config{Store: store, Cost: accounts.Cost{Memory: 8, Passes: 1, Threads: 1}}) // by the real clock
	server, dir := secured(t, admin.Backend{Members: f, Backups: f, Keeping: f, Tasks: f, Approvals: second{api.ApproveDelete: time.Hour}, Watch: f.watch, Accounts: who, Trail: trail, Kept: store})
	for _, name := range []string{"cat", "dan"} {
		if _, err := who.AddUser(t.Context(), accounts.NewUser{Name: name, Role: api.RoleOperator, Password: password}, "test"); err != nil {
			t.Fatal(err)
		}
	}
	as := func(user string, args ...string) (int, string) {
		t.Helper()
		secret, _, err := who.AddToken(t.Context(), accounts.NewToken{Name: "own", User: user, Role: api.RoleOperator, Approves: true}, user)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, user)
		if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
		env, stdout, stderr := world("", "")
		exit := Main(t.Context(), append(args, "--server", server, "--token-file", file, "--server-ca-file", filepath.Join(dir, "ca.pem")), env)
		return exit, stdout.String() + stderr.String()
	}
	exit, said := as("cat", "backup", "delete", "b1")
	_, after, found := strings.Cut(said, "fencepost approval approve ")
	if exit != api.ExitNeedsOperator || !found || !strings.Contains(said, "waits for a second person") {
		t.Fatalf("exit %d: %s", exit, said)
	}
	id, _, _ := strings.Cut(after, ",")
	if exit, said := as("cat", "approval", "approve", id); exit != api.ExitFailed || !strings.Contains(said, "it takes a second person") {
		t.Errorf("one's own: exit %d: %s", exit, said)
	}
	if exit, said := as("dan", "approval", "approve", id); exit != 0 || !strings.Contains(said, "done") || !strings.Contains(said, "by dan, over a token") || !strings.Contains(said, "d1") {
		t.Errorf("another's: exit %d: %s", exit, said)
	}
	if exit, said := as("dan", "approval", "refuse", id); exit != api.ExitFailed || !strings.Contains(said, "does not wait any more: it is done, by dan") {
		t.Errorf("once more: exit %d: %s", exit, said)
	}
}
