package e2e

import (
	"errors"
	"fmt"
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

// TestAccountsOfAGroup: a user and a token made at one node are known at the others, also when that one is dead; what they do
// anywhere is one trail, and each node has the same copy of it, the one that was dead after its return.
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
