package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/web/webtest"
)

const pagePassword = "correct horse battery"

// site is the address of a node's page.
func (c *cluster) site(name string) string {
	return fmt.Sprintf("https://127.0.0.1:%d", c.ports[name+"/admin"])
}

// browsable gives the admin ports a certificate that browsers understand: they do not speak Ed25519, of which those of nodes are.
func (c *cluster) browsable() {
	c.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		c.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		c.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{"page.pem": {Type: "CERTIFICATE", Bytes: der}, "page.key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(c.dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	for _, name := range c.names {
		text, err := os.ReadFile(c.file(name))
		if err != nil {
			c.t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		for i, line := range lines {
			if strings.HasPrefix(line, "admin:") {
				lines[i] = strings.NewReplacer("/"+name+".pem", "/page.pem", "/"+name+".key", "/page.key").Replace(line)
			}
		}
		if err := os.WriteFile(c.file(name), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
}

// logIn logs in at a node's page.
func logIn(b *webtest.Browser, site, name string) {
	b.Go(site)
	b.Type("#name", name)
	b.Type("#password", pagePassword)
	b.Click("main form button")
	b.Await(`document.title.startsWith("Overview")`)
}

// openTask is the id of the task whose page is open.
func openTask(b *webtest.Browser) string {
	b.Await(`location.pathname.startsWith("/tasks/") && document.querySelector("#log")`)
	return path.Base(webtest.Eval[string](b, "location.pathname"))
}

// live notes that the page is not to be loaded again, and stayed tells whether it was not.
const live, stayed = "window.stays = true; true", "window.stays === true"

// TestPageOfAGroup is an operator's hour with the page of a real group: they log in, back up, see the bar move, cancel, back up
// again, watch the node die that was at it and the time line appear, see the backup complete on another one, and restore it.
// A viewer sees the same and can change none of it.
func TestPageOfAGroup(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 4))
	c := newCluster(t, options{nodes: 3, port: true, dsns: map[string]string{"shop": dsn}, extra: slowly})
	c.browsable()
	c.up()
	for name, role := range map[string]api.Role{"ann": api.RoleOperator, "vic": api.RoleViewer} {
		if _, err := c.client("n1").AddUser(c.ctx, api.AddUser{Name: name, Role: role, Password: pagePassword}); err != nil {
			t.Fatal(err)
		}
	}
	b := webtest.Open(t)
	b.Wide(1280)
	logIn(b, c.site("n1"), "ann")
	b.Shot("live-overview")

	backUp := func() string {
		b.Click("#menu a[href='/backups']")
		b.Click("details summary")
		b.Click("form[action='/backups'][method=post] button")
		return openTask(b)
	}
	first := backUp()
	b.Await(`document.querySelector("progress") && document.querySelector("progress").value > 0`)
	webtest.Eval[bool](b, live)
	was := webtest.Eval[float64](b, `document.querySelector("progress").value`)
	b.Await(fmt.Sprintf(`document.querySelector("progress").value > %v`, was))
	if !webtest.Eval[bool](b, stayed) {
		t.Error("the bar moved because the page was loaded again")
	}
	b.Shot("live-task")
	b.Click("form[action$='/cancel'] button")
	b.Await(`document.querySelector(".chip").textContent === "cancelled"`)

	second := backUp()
	owner := c.reaches("n1", second, "uploading", sent).Node
	by := c.survivor(owner)
	b.Go(c.site(by) + "/recoveries") // the session is the group's, so it is the other node's, too
	b.AwaitText("Nothing is fenced.")
	webtest.Eval[bool](b, live)
	b.Await(`document.querySelector("#pulse").className === "on"`)
	c.kill(owner)
	row := `[...document.querySelectorAll("#live a")].find(a => a.textContent === "backup of ` + owner + `")`
	b.Await(row)
	if !webtest.Eval[bool](b, stayed) {
		t.Error("the recovery appeared because the page was loaded again")
	}
	b.Go(webtest.Eval[string](b, row+".href"))
	for _, words := range []string{"evidence", "view ", "appointed", "fence raised", "orphan shop", "fence lowered"} {
		b.Await(`[...document.querySelectorAll(".picture .what")].some(w => w.textContent.startsWith("` + words + `"))`)
	}
	b.Await(`document.querySelector(".picture .at-orphan .note").textContent === "uploading → planned"`)
	b.Check("the time line")
	b.Shot("live-time-line")

	done := c.finishes(by, second)
	if done.Attempt < 2 {
		t.Errorf("%+v", done)
	}
	b.Go(c.site(by) + "/backups")
	b.Click("tbody th a[href='/backups/" + done.Backup + "']")
	b.Click("a[href$='/restore']")
	b.Click("input[name=replace]")
	b.Click("section[aria-labelledby=choice] button")
	b.AwaitText("Type the name of the target")
	b.Shot("live-restore")
	b.Type("#repeat", nameIn(t, dsn))
	b.Click("section[aria-labelledby=sure] button")
	b.AwaitText("The restore is planned.")
	if restored := c.finishes(by, openTask(b)); restored.Undo == "" {
		t.Errorf("%+v", restored)
	}
	b.Await(`document.querySelector(".chip").textContent === "completed"`)

	b.Click("form[action='/log-out'] button")
	b.AwaitText("There is no first password")
	logIn(b, c.site(by), "vic")
	c.changesNothing(b, by, []string{"/", "/backups", "/backups/" + done.Backup, "/tasks/" + first, "/schedules", "/databases/shop", "/storages", "/components", "/members"})
}

// changesNothing looks at pages as a viewer: there is no form on them but the searches and the log-out, and one that is made
// up is refused.
func (c *cluster) changesNothing(b *webtest.Browser, by string, pages []string) {
	c.t.Helper()
	for _, p := range pages {
		b.Go(c.site(by) + p)
		if forms := webtest.Eval[[]string](b, `[...document.querySelectorAll("form[method=post]")].map(f => new URL(f.action).pathname)`); strings.Join(forms, " ") != "/log-out" {
			c.t.Errorf("%s has a viewer change: %v", p, forms)
		}
	}
	made := `(() => { const r = new XMLHttpRequest(); r.open("POST", "/backups", false); r.setRequestHeader("Content-Type", "application/x-www-form-urlencoded");
		r.send(new URLSearchParams({form_token: document.querySelector("[name=form_token]").value, database: "shop"}).toString()); return r.status; })()`
	if status := webtest.Eval[int](b, made); status != 403 {
		c.t.Errorf("a form that a viewer made up: %d", status)
	}
	b.Go(c.site(by) + "/audit")
	b.AwaitText("this needs admin")
}
