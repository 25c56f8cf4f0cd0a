package app

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/audit"
)

// TestAccountsOfANode: the first user comes over the socket, a token opens the port, what was done is in the trail under the
// names of those who did it, and on the node's own disk; and all of it is there after a restart.
func TestAccountsOfANode(t *testing.T) {
	c := config(t)
	c.Admin.Bind = freeAddr(t)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	node, stop := start(t, c)
	ready(t, node)
	socket := api.NewClient(c.Admin.Socket)
	defer socket.Close()
	ctx := t.Context()
	if _, err := socket.PauseComponent(ctx, "backup", true); err != nil { // the task shall stay planned
		t.Fatal(err)
	}
	answer, err := http.Get("http://" + c.Admin.Bind + api.PathView)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Fatalf("without anybody: %s", answer.Status)
	}
	if _, err := socket.AddUser(ctx, api.AddUser{Name: "ann", Role: api.RoleOperator, Password: "correct horse battery"}); err != nil {
		t.Fatal(err)
	}
	made, err := socket.AddToken(ctx, api.AddToken{Name: "test", User: "ann", Role: api.RoleOperator})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][2]int{"/metrics": {401, 200}, "/healthz": {200, 200}, "/readyz": {200, 200}} {
		for i, token := range []string{"", made.Secret} {
			if got := asks(t, "http://"+c.Admin.Bind+path, token); got != want[i] {
				t.Errorf("%s, with a token: %t: %d, want %d", path, token != "", got, want[i])
			}
		}
	}
	port, err := api.NewRemote(api.Remote{URL: "http://" + c.Admin.Bind, Token: made.Secret})
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	task, err := port.CreateBackup(ctx, api.CreateBackup{Database: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	if task, err = port.Cancel(ctx, task.ID); err != nil || task.CancelBy != "ann" {
		t.Errorf("cancelled by %q, %v", task.CancelBy, err)
	}
	var refused *api.Error
	if _, err := port.Users(ctx); !errors.As(err, &refused) || refused.Code != api.CodeForbidden {
		t.Errorf("an operator sees the users: %v", err)
	}
	list, err := socket.Audit(ctx, api.AuditFilter{Actor: "ann"})
	if err != nil || len(list) != 4 || list[3].Action != "backup.create" || list[0].Target != task.ID {
		t.Errorf("%+v, %v", list, err)
	}
	stop()

	copied, err := audit.CheckCopy(c.AuditFile())
	if err != nil || !copied.Whole || copied.Records != 10 {
		t.Errorf("the copy: %+v, %v", copied, err)
	}
	text, err := os.ReadFile(c.AuditFile())
	if err != nil || strings.Contains(string(text), "correct horse") || strings.Contains(string(text), made.Secret) {
		t.Errorf("the copy holds a secret, %v", err)
	}
	node, _ = start(t, c)
	ready(t, node)
	whole, err := socket.CheckAudit(ctx)
	if err != nil || !whole.Whole || whole.Hash != copied.Hash {
		t.Errorf("after a restart: %+v, %v", whole, err)
	}
	if s, err := port.Session(ctx); err != nil || s.Name != "ann" || s.Via != "token" {
		t.Errorf("after a restart the token is %+v, %v", s, err)
	}
}

// asks is the status of an answer.
func asks(t *testing.T, url, token string) int {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	return a.StatusCode
}
