package cli

import (
	"context"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/admin"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/approvals"
	"github.com/fencepost/fencepost/cmd/internal/audit"
	"github.com/fencepost/fencepost/cmd/internal/kept"
	"github.com/fencepost/fencepost/cmd/internal/offline"
)

const password = "correct horse battery"

// secrets are what is drawn anew each time: tokens, and their ids.
var secrets = regexp.MustCompile(`fp1_[0-9a-f]{12}_[A-Za-z0-9_-]{43}|\b[0-9a-f]{12}\b`)

// localUser is what a daemon calls who runs this test.
func localUser(t *testing.T) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return "local:" + u.Username
}

// people are the accounts and the audit trail of a daemon: an admin, and an operator who is locked.
func people(t *testing.T) (*kept.Memory, *accounts.Accounts, *audit.Trail) {
	t.Helper()
	store := &kept.Memory{}
	who := accounts.New(accounts.Config{Store: store, Now: now, Cost: accounts.Cost{Memory: 8, Passes: 1, Threads: 1}})
	trail := audit.New(store, "n1", now)
	for name, role := range map[string]api.Role{"ann": api.RoleAdmin, "bob": api.RoleOperator} {
		if _, err := who.AddUser(t.Context(), accounts.NewUser{Name: name, Role: role, Password: password}, "the first"); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		if _, err := who.LogIn(t.Context(), "bob", "guessed wrongly", "192.0.2.9"); err == nil {
			t.Fatal("a wrong password was right")
		}
	}
	if _, _, err := who.AddToken(t.Context(), accounts.NewToken{Name: "ci", User: "ann", Role: api.RoleViewer}, "ann"); err != nil {
		t.Fatal(err)
	}
	for _, e := range []audit.Entry{
		{Actor: "ann", Role: api.RoleAdmin, Via: "session", Address: "192.0.2.7", Action: "backup.create", Phase: audit.Asked, Request: audit.Redact([]byte(`{"database":"shop"}`))},
		{Actor: "ann", Role: api.RoleAdmin, Via: "session", Address: "192.0.2.7", Action: "backup.create", Phase: audit.Done, Of: 1, After: audit.Redact([]byte(`{"id":"t1"}`))},
		{Actor: "bob", Role: api.RoleOperator, Via: "token", Action: "restore.create", Target: "b1", Phase: audit.Asked, Request: audit.Redact([]byte(`{"target":"shop_copy"}`))},
		{Actor: "bob", Role: api.RoleOperator, Via: "token", Action: "restore.create", Target: "b1", Phase: audit.Failed, Of: 3, Problem: "the target exists"},
	} {
		if _, err := trail.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	for i, a := range []api.Approval{
		{State: api.ApprovalDone, By: "bob", Text: "restore backup b1 of shop over database shop on the server of shop", Decided: before(time.Hour), DecidedBy: "ann", DecidedVia: "session", Task: "t9"},
		{State: api.ApprovalWaiting, By: "ann", Text: "delete backup b1 of shop at once, so that it cannot be taken back", Request: []byte(`{"now":true}`)},
	} {
		a.ID, a.For, a.Action, a.Method, a.Path = "ask"+number(uint64(i+1)), []string{api.ApproveDelete}, "backup.delete", "POST", api.BackupPath("b1")+"/delete"
		a.Role, a.Via, a.Address, a.Created, a.Expires = api.RoleAdmin, "session", "192.0.2.7", *before(time.Duration(3-i) * time.Hour), *before(-22 * time.Hour)
		if err := store.Commit(t.Context(), kept.Put(approvals.Prefix+a.ID, a, 0)); err != nil {
			t.Fatal(err)
		}
	}
	return store, who, trail
}

// secured is a daemon on a port, with TLS: its address, and a folder with its authority's certificate ca.pem.
func secured(t *testing.T, b admin.Backend) (server, dir string) {
	t.Helper()
	dir = t.TempDir()
	if _, err := offline.NewAuthority(dir, "shop", offline.AuthorityValid); err != nil {
		t.Fatal(err)
	}
	if _, err := offline.IssueCert(dir, "shop", "n1", offline.NodeValid); err != nil {
		t.Fatal(err)
	}
	secure, err := admin.TLS(filepath.Join(dir, "n1.pem"), filepath.Join(dir, "n1.key"))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	s := admin.NewNetServer("127.0.0.1:0", secure, admin.Front{Handler: admin.NewHandler(b), Accounts: b.Accounts, Hosts: []string{"127.0.0.1"}, Logger: log}, log)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		s.Stop(ctx)
	})
	return "https://" + s.Address(), dir
}

// TestRemote: the command asks a daemon on another machine, which believes a token and proves itself by the group's
// authority; what would send a token to strangers is refused before anything is sent.
func TestRemote(t *testing.T) {
	f := newFake()
	store, _, trail := people(t)
	who := accounts.New(accounts.Config{Store: store, Cost: accounts.Cost{Memory: 8, Passes: 1, Threads: 1}}) // by the real clock
	secret, _, err := who.AddToken(t.Context(), accounts.NewToken{Name: "remote", User: "ann", Role: api.RoleOperator}, "ann")
	if err != nil {
		t.Fatal(err)
	}
	server, dir := secured(t, admin.Backend{Members: f, Tasks: f, Requests: f, Watch: f.watch, Accounts: who, Trail: trail, Kept: store})
	in := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		if err := os.WriteFile(in(name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return in(name)
	}
	good, ca := write("token", secret+"\n", 0o600), in("ca.pem")
	other := t.TempDir()
	if _, err := offline.NewAuthority(other, "shop", offline.AuthorityValid); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name string
		args []string
		exit int
		want string
	}{
		{"looks", []string{"view", "--server", server, "--token-file", good, "--server-ca-file", ca}, 0, "n1"},
		{"does", []string{"backup", "create", "shop", "--server", server, "--token-file", good, "--server-ca-file", ca}, 0, "create"},
		{"may not", []string{"audit", "--server", server, "--token-file", good, "--server-ca-file", ca}, 1, "ann is operator, and this needs admin"},
		{"unknown authority", []string{"view", "--server", server, "--token-file", good}, 1, "--server-ca-file"},
		{"another authority", []string{"view", "--server", server, "--token-file", good, "--server-ca-file", filepath.Join(other, "ca.pem")}, 1, "--server-ca-file"},
		{"a wrong token", []string{"view", "--server", server, "--token-file", write("wrong", secret+"x", 0o600), "--server-ca-file", ca}, 1, "the token is none"},
		{"no token", []string{"view", "--server", server}, 2, "--server needs a token"},
		{"a token for all to read", []string{"view", "--server", server, "--token-file", write("open", secret, 0o644)}, 2, "chmod 600"},
		{"without TLS", []string{"view", "--server", "http://192.0.2.1:7948", "--token-file", good}, 2, "over https only"},
		{"no address", []string{"view", "--server", "n1:7948", "--token-file", good}, 2, "makes no sense"},
		{"both", []string{"view", "--server", server, "--socket", "/x", "--token-file", good}, 2, "two daemons"},
		{"nobody there", []string{"view", "--server", "https://127.0.0.1:1", "--token-file", good, "--server-ca-file", ca}, 1, "no answer from a daemon at 127.0.0.1:1"},
	} {
		t.Run(x.name, func(t *testing.T) {
			env, stdout, stderr := world("", "")
			exit := Main(t.Context(), x.args, env)
			if all := stdout.String() + stderr.String(); exit != x.exit || !strings.Contains(all, x.want) || strings.Contains(all, secret) {
				t.Errorf("exit %d, %s", exit, all)
			}
		})
	}
}

// TestGoldenOfTokens runs the command lines of testdata/remote/*.txt, each for a daemon of its own that is asked over its port, by
// a token of cat, an admin since before anything was asked, that approves. TOKEN is the id of another token.
func TestGoldenOfTokens(t *testing.T) {
	golden(t, "testdata/remote/*.txt", func(t *testing.T, typed string, args []string) result {
		f := newFake()
		store, who, trail := people(t)
		early := accounts.New(accounts.Config{Store: store, Now: func() time.Time { return now().Add(-24 * time.Hour) }, Cost: accounts.Cost{Memory: 8, Passes: 1, Threads: 1}})
		if _, err := early.AddUser(t.Context(), accounts.NewUser{Name: "cat", Role: api.RoleAdmin, Password: password}, "the first"); err != nil {
			t.Fatal(err)
		}
		secret, _, err := early.AddToken(t.Context(), accounts.NewToken{Name: "own", User: "cat", Role: api.RoleAdmin, Approves: true}, "cat")
		if err != nil {
			t.Fatal(err)
		}
		tokens, err := who.Tokens(t.Context(), "ann")
		if err != nil {
			t.Fatal(err)
		}
		server, dir := secured(t, admin.Backend{Members: f, Backups: f, Keeping: f, Tasks: f, Approvals: second{api.ApproveDelete: time.Hour}, Watch: f.watch, Accounts: who, Trail: trail, Kept: store, Now: now})
		file := filepath.Join(dir, "token")
		if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
		for i := range args {
			for _, x := range tokens {
				if args[i] == "TOKEN" && x.Name == "ci" {
					args[i] = x.ID
				}
			}
		}
		r := run(t, "", typed, append(args, "--server", server, "--token-file", file, "--server-ca-file", filepath.Join(dir, "ca.pem"))...)
		return result{secrets.ReplaceAllString(r.stdout, "DRAWN"), secrets.ReplaceAllString(r.stderr, "DRAWN"), r.exit}
	})
}
