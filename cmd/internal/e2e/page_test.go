package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
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

// TestPageOfAGroup is an hour with the page of a real group: an admin logs in and adds a storage and a database; an operator backs up, see the bar move, cancel, back up
// again, watch the node die that was at it and the time line appear, see the backup complete on another one, and restore it.
// A viewer sees the same and can change none of it.
func TestPageOfAGroup(t *testing.T) {
	t.Parallel()
	dsn, books := database(t, bulk("goods", 4)), database(t, bulk("titles", 4))
	c := newCluster(t, options{nodes: 3, port: true, dsns: map[string]string{"shop": dsn}, extra: slowly})
	c.browsable()
	c.up()
	for name, role := range map[string]api.Role{"ada": api.RoleAdmin, "ann": api.RoleOperator, "vic": api.RoleViewer} {
		if _, err := c.client("n1").AddUser(c.ctx, api.AddUser{Name: name, Role: role, Password: pagePassword}); err != nil {
			t.Fatal(err)
		}
	}
	b := webtest.Open(t)
	b.Wide(1280)
	logIn(b, c.site("n1"), "ada")
	c.addsByPage(b, books)
	b.Click("form[action='/log-out'] button")
	b.AwaitText("There is no first password")
	logIn(b, c.site("n1"), "ann")
	b.Shot("live-overview")

	backUp := func(database string) string {
		link := "a[href='/databases/" + database + "']"
		c.until("the page knows database "+database+", which is put together once a second at most", func() bool {
			b.Click("#menu a[href='/databases']")
			return webtest.Eval[bool](b, `document.querySelector("`+link+`") !== null`)
		})
		b.Click(link)
		b.Click("form[action='/backups'] button")
		return openTask(b)
	}
	first := backUp("books")
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

	second := backUp("shop")
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

// addsByPage adds a storage and a database to the whole group, as an admin; the connection is in a file, as a secret has to be.
func (c *cluster) addsByPage(b *webtest.Browser, dsn string) {
	c.t.Helper()
	reference, shelf := filepath.Join(c.dir, "books.dsn"), filepath.Join(c.dir, "c")
	if err := errors.Join(os.WriteFile(reference, []byte(dsn), 0o600), os.Mkdir(shelf, 0o700)); err != nil {
		c.t.Fatal(err)
	}
	b.Click("#menu a[href='/setup']")
	b.Click("a[href='/setup/storage']")
	b.Type("#name", "c")
	b.Type("#f-path", shelf)
	b.Click("main form button")
	b.AwaitText("The group works with it from now on.")
	b.Click("a[href='/setup/database']")
	b.Type("#name", "books")
	b.Type("#f-dsn", dsn)
	b.Click("main form button")
	b.Await(`document.querySelector("[role=alert]").textContent.includes("password")`)
	b.Type("#f-dsn", "file:"+reference)
	b.Click("main form button")
	b.AwaitText("The group works with it from now on.")
	b.Shot("live-setup")
	for _, name := range c.names {
		c.until(name+" knows the database", func() bool {
			list, err := c.client(name).Databases(c.ctx)
			return err == nil && slices.ContainsFunc(list, func(d api.Database) bool { return d.Name == "books" })
		})
	}
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
