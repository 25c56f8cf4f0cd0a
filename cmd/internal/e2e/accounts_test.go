package e2e

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/audit"
)

// remote is the API of a node's port, for a token.
func (c *cluster) remote(name, token string) *api.Client {
	c.t.Helper()
	ca, err := os.ReadFile(filepath.Join(c.dir, "ca.pem"))
	if err != nil {
		c.t.Fatal(err)
	}
	r, err := api.NewRemote(api.Remote{URL: fmt.Sprintf("https://127.0.0.1:%d", c.ports[name+"/admin"]), Token: token, Authority: ca})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(r.Close)
	return r
}

// TestAccountsOfAGroup: a user and a token made at one node are known at the others, also when that one is dead; what takes a
// second person is asked at one node and approved at another, by nobody who has asked; what they do anywhere is one trail, and
// each node has the same copy of it, the one that was dead after its return.
func TestAccountsOfAGroup(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{nodes: 3, port: true, dsns: map[string]string{"shop": database(t, bulk("goods", 1))}})
	c.up()
	socket := c.client("n1")
	if _, err := socket.AddUser(c.ctx, api.AddUser{Name: "ann", Role: api.RoleOperator, Password: "correct horse battery"}); err != nil {
		t.Fatal(err)
	}
	made, err := socket.AddToken(c.ctx, api.AddToken{Name: "e2e", User: "ann", Role: api.RoleOperator})
	if err != nil {
		t.Fatal(err)
	}
	n2, n3 := c.remote("n2", made.Secret), c.remote("n3", made.Secret)
	task, err := n2.CreateBackup(c.ctx, api.CreateBackup{Database: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	c.finishes("n2", task.ID)
	c.twoPersons(n2, task.Backup)
	c.kill("n1")
	var backup api.Backup
	c.until("n3 marks the backup without n1", func() bool { // a leader has to be found first
		yes := true
		backup, err = n3.MarkBackup(c.ctx, task.Backup, api.MarkBackup{Pinned: &yes})
		return err == nil
	})
	if !backup.Pinned || backup.MarkedBy != "ann" {
		t.Errorf("%+v", backup)
	}
	if a, err := n3.Approvals(c.ctx); err != nil || len(a) != 2 || a[0].State != api.ApprovalDone || a[1].State != api.ApprovalWithdrawn {
		t.Errorf("what n3 knows of approvals: %+v, %v", a, err)
	}
	var refused *api.Error
	if _, err := n3.ForgetNode(c.ctx, api.NodeName{Node: "n1"}); !errors.As(err, &refused) || refused.Code != api.CodeForbidden {
		t.Errorf("an operator forgets a node: %v", err)
	}
	if _, err := c.remote("n3", made.Secret+"x").View(c.ctx); !errors.As(err, &refused) || refused.Code != api.CodeUnauthorized {
		t.Errorf("a wrong token: %v", err)
	}
	c.start("n1")
	c.ready("n1")
	whole, err := c.client("n2").CheckAudit(c.ctx)
	if err != nil || !whole.Whole || whole.Records < 8 {
		t.Fatalf("%+v, %v", whole, err)
	}
	for _, name := range c.names {
		c.until("the copy of "+name+" has it all", func() bool {
			copied, err := audit.CheckCopy(filepath.Join(c.dir, name, "audit.jsonl"))
			return err == nil && copied.Whole && copied.Hash == whole.Hash && copied.Records == whole.Records
		})
	}
}

// session is somebody who is logged in at a node's port.
type session struct {
	c      *cluster
	base   string
	client *http.Client
	form   string
}

func (c *cluster) logIn(node, name, password string) *session {
	c.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // its certificate names the node, not the address; remote looks at it
	c.t.Cleanup(transport.CloseIdleConnections)
	s := &session{c: c, base: fmt.Sprintf("https://127.0.0.1:%d", c.ports[node+"/admin"]), client: &http.Client{Jar: jar, Transport: transport}}
	var made api.Session
	if status := s.post(api.PathSession, api.LogIn{Name: name, Password: api.Secret(password)}, &made); status != http.StatusAccepted {
		c.t.Fatalf("log in as %s at %s: %d", name, node, status)
	}
	s.form = made.FormToken
	return s
}

// post gives the status of the answer.
func (s *session) post(path string, body, into any) int {
	s.c.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.c.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(s.c.ctx, http.MethodPost, s.base+path, bytes.NewReader(text))
	if err != nil {
		s.c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", s.base)
	r.Header.Set(api.HeaderFormToken, s.form)
	answer, err := s.client.Do(r)
	if err != nil {
		s.c.t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		s.c.t.Fatal(err)
	}
	return answer.StatusCode
}

// twoPersons: ann asks at n2 to delete a backup, which nobody does alone. She cannot approve it at n3, where bob can; another
// request she withdraws there. It is carried out once: the backup can be taken back.
func (c *cluster) twoPersons(n2 *api.Client, backup string) {
	t := c.t
	t.Helper()
	socket := c.client("n1")
	task, err := n2.CreateBackup(c.ctx, api.CreateBackup{Database: "shop"}) // the last one would not be deleted
	if err != nil {
		t.Fatal(err)
	}
	c.finishes("n2", task.ID)
	const password = "another horse battery"
	if _, err := socket.AddUser(c.ctx, api.AddUser{Name: "bob", Role: api.RoleOperator, Password: password}); err != nil {
		t.Fatal(err)
	}
	if _, err := socket.SetSetting(c.ctx, api.Setting{Kind: "approval", Name: "delete", Spec: json.RawMessage(`{"name":"delete"}`)}); err != nil {
		t.Fatal(err)
	}
	ask := func(now bool) string {
		t.Helper()
		var waits *api.Error
		if _, err := n2.DeleteBackup(c.ctx, backup, api.DeleteBackup{Now: now}); !errors.As(err, &waits) || waits.Code != api.CodeNeedsApproval {
			t.Fatalf("a delete does not wait: %v", err)
		}
		return waits.Approval
	}
	ann, bob := c.logIn("n3", "ann", "correct horse battery"), c.logIn("n3", "bob", password)
	var p api.Problem
	var a api.Approval
	first := ask(true)
	if status := ann.post(api.ApprovalPath(first)+"/approve", struct{}{}, &p); status != http.StatusForbidden || p.Code != api.CodeForbidden {
		t.Errorf("her own: %d, %+v", status, p)
	}
	if status := ann.post(api.ApprovalPath(first)+"/refuse", api.RefuseApproval{}, &a); status != http.StatusAccepted || a.State != api.ApprovalWithdrawn {
		t.Errorf("withdrawn: %d, %+v", status, a)
	}
	second := ask(false)
	a = api.Approval{}
	if status := bob.post(api.ApprovalPath(second)+"/approve", struct{}{}, &a); status != http.StatusAccepted || a.State != api.ApprovalDone || a.By != "ann" || a.DecidedBy != "bob" {
		t.Fatalf("approved: %d, %+v", status, a)
	}
	if status := bob.post(api.ApprovalPath(second)+"/approve", struct{}{}, &p); status != http.StatusConflict {
		t.Errorf("approved twice: %d", status)
	}
	if _, err := n2.UndeleteBackup(c.ctx, backup); err != nil {
		t.Errorf("it was not deleted, or cannot be taken back: %v", err)
	}
}
