package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fencepost/fencepost/pipeline/pgtest"
	"github.com/fencepost/fencepost/pipeline/storage/dropbox/dropboxtest"
)

// base is the PostgreSQL server, on a host of its own.
type base struct {
	*pgtest.Server
	addr string
}

// dsn is how everybody reaches one of its databases.
func (b *base) dsn(database string) string {
	u, _ := url.Parse(b.DSN(database))
	u.Host = net.JoinHostPort(b.addr, strconv.Itoa(b.Port))
	return u.String()
}

// goods is the database that is backed up: whatever moment a backup is of, the amounts add up to nothing and the rows are
// all there.
const goods = `
	CREATE TABLE accounts AS SELECT i AS id, 0 AS amount, (SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 32) j) AS body FROM generate_series(1, 1500) i;
	ALTER TABLE accounts ADD PRIMARY KEY (id);
	CREATE TABLE moves (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, giver int REFERENCES accounts, taker int REFERENCES accounts);`

// entire says whether a copy of it is whole: rows, sum, and what pg_restore makes last.
const entire = `SELECT concat_ws(' ', (SELECT count(*) FROM accounts), (SELECT sum(amount) FROM accounts),
	(SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND conrelid = 'moves'::regclass))`

const isEntire = "1500 0 2"

// watched are the tables of the ledger whose writes are written down, with the key and the token of a row.
var watched = map[string][3]string{
	"tasks": {"NEW.id", "NEW.token", "false"}, "backups": {"NEW.id", "NEW.token", "false"},
	"runs": {"NEW.run", "0", "NEW.shut_out IS NOT NULL"}, "fences": {"NEW.component || '/' || NEW.node || '/' || NEW.run", "NEW.token", "false"},
}

func (w *world) startBase() error {
	h, err := w.net.add("pg", 201)
	if err != nil {
		return err
	}
	err = w.net.within(h, func() error {
		srv, err := pgtest.Start(w.ctx, "", pgtest.Options{Settings: map[string]string{
			"listen_addresses": "127.0.0.1," + h.addr, "track_commit_timestamp": "on", "max_connections": "300",
		}})
		w.base = &base{srv, h.addr}
		return err
	})
	if err != nil {
		return err
	}
	w.t.Cleanup(func() { w.must(w.base.Stop()) })
	allow, err := os.OpenFile(filepath.Join(w.base.Dir, "data", "pg_hba.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(allow, "host all all %s0/24 scram-sha-256\n", w.net.subnet)
	if err := errors.Join(err, allow.Close()); err != nil {
		return err
	}
	return w.net.within(h, func() error { // as the server does not listen to others yet
		if err := w.sql(w.base.DSN("postgres"), "SELECT pg_reload_conf()", "CREATE DATABASE shop", "CREATE DATABASE ledger", "CREATE DATABASE place"); err != nil {
			return err
		}
		return w.sql(w.base.DSN("shop"), goods)
	})
}

// psql is the client program, told to do what is given.
func (w *world) psql(ctx context.Context, dsn string, args ...string) (answer string, err error) {
	bin, err := pgtest.BinDir()
	if err != nil {
		return "", err
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", err
	}
	password, _ := u.User.Password()
	u.User = url.User(u.User.Username())
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "psql"), append([]string{"-XAtq", "-F", "\t", "-v", "ON_ERROR_STOP=1", u.String()}, args...)...)
	cmd.Env = append(os.Environ(), "PGPASSWORD="+password, "PGCONNECT_TIMEOUT=5")
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("psql: %s%w", said.String(), err)
	}
	return strings.TrimSpace(out.String()), nil
}

// sql carries statements out, each in a transaction of its own.
func (w *world) sql(dsn string, statements ...string) error {
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	var args []string
	for _, s := range statements {
		args = append(args, "-c", s)
	}
	_, err := w.psql(ctx, dsn, args...)
	return err
}

// text is what a query answers.
func (w *world) text(ctx context.Context, dsn, query string) (answer string, err error) {
	return w.psql(ctx, dsn, "-c", query)
}

// audit has the ledger's database write down who writes what. The tables are there once the first node has made them.
func (w *world) audit() error {
	statements := []string{`CREATE TABLE trail (seq bigint GENERATED ALWAYS AS IDENTITY, xact xid8 DEFAULT pg_current_xact_id(),
		writer text DEFAULT current_setting('application_name'), what text, row text, token bigint, shut boolean)`}
	for table, is := range watched {
		statements = append(statements, fmt.Sprintf(`CREATE FUNCTION trail_%[1]s() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO public.trail (what, row, token, shut) VALUES ('%[1]s', %[2]s, %[3]s, %[4]s); RETURN NULL; END $$`, table, is[0], is[1], is[2]),
			fmt.Sprintf(`CREATE TRIGGER trail AFTER INSERT OR UPDATE ON fencepost_ledger.%[1]s FOR EACH ROW EXECUTE FUNCTION trail_%[1]s()`, table))
	}
	return w.sql(w.base.dsn("ledger"), statements...)
}

// trail is what the ledger's database has written down, in the order of commits.
func (w *world) trail() (list []trail, err error) {
	rows, err := w.text(w.ctx, w.base.dsn("ledger"), `SELECT what, row, token, shut, writer FROM trail ORDER BY pg_xact_commit_timestamp(xact::xid), seq`)
	for line := range strings.Lines(rows) {
		is := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(is) != 5 {
			return nil, fmt.Errorf("a line of the trail: %q", line)
		}
		token, err := strconv.ParseUint(is[2], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("a line of the trail: %q: %w", line, err)
		}
		list = append(list, trail{Table: is[0], Row: is[1], Token: token, Shut: is[3] == "t", Writer: is[4]})
	}
	return list, err
}

// crash has the server lose one of its processes, which makes it begin anew from its log.
func (w *world) crash() error {
	ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
	defer cancel()
	pid, err := w.text(ctx, w.base.dsn("postgres"), "SELECT pid::text FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(pid)
	return errors.Join(err, syscall.Kill(n, syscall.SIGKILL))
}

// postmaster is the server's first process; those of its sessions are its children.
func (w *world) postmaster() ([]int, error) {
	text, err := os.ReadFile(filepath.Join(w.base.Dir, "data", "postmaster.pid"))
	if err != nil {
		return nil, err
	}
	pid, err := strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
	return append([]int{pid}, descendants(pid)...), err
}

// store is the S3 server, on a host of its own.
type store struct {
	host    *host
	program string
	args    []string
	env     []string
	log     string       // of requests
	url     string       // of itself
	front   string       // of what nodes reach it by, which fails as it is told to
	failing atomic.Int64 // share of requests, in thousandths

	process *process
}

const storeKey, storeSecret = "id", "a secret"

func (w *world) startStore() error {
	h, err := w.net.add("s3", 202)
	if err != nil {
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	for _, dir := range []string{"s3", "s3-versions", "s3-iam"} {
		if err := os.Mkdir(w.in(dir), 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(w.in("s3.secret"), []byte(storeSecret), 0o600); err != nil {
		return err
	}
	address := h.addr + ":7070"
	w.store = &store{
		host: h, program: filepath.Join(cache, "fencepost", "tools", "versitygw-v1.8.0"), log: w.in("s3.requests"), url: "http://" + address,
		args: []string{"--port", address, "--quiet", "--health", "/health", "--access-log", w.in("s3.requests"), "--iam-dir", w.in("s3-iam"), "posix", "--versioning-dir", w.in("s3-versions"), w.in("s3")},
		env:  []string{"ROOT_ACCESS_KEY_ID=" + storeKey, "ROOT_SECRET_ACCESS_KEY=" + storeSecret},
	}
	w.t.Cleanup(func() { w.net.die(h) })
	if err := w.serve(); err != nil {
		return fmt.Errorf("start the S3 server for tests (make deps builds it): %w", err)
	}
	err = w.await("the S3 server answers", func() error {
		res, err := http.Get(w.store.url + "/health")
		if err == nil {
			err = res.Body.Close()
		}
		return err
	})
	if err != nil {
		return err
	}
	make := exec.CommandContext(w.ctx, w.store.program, "admin", "--access", storeKey, "--secret", storeSecret, "--endpoint-url", w.store.url, "create-bucket", "--owner", storeKey, "--bucket", "cloud")
	if out, err := make.CombinedOutput(); err != nil {
		return fmt.Errorf("make the bucket: %s%w", out, err)
	}
	if err := w.startFront(); err != nil {
		return err
	}
	w.storages += fmt.Sprintf("- {name: disk, kind: local, path: %s}\n", w.disk)
	w.storages += fmt.Sprintf("- {name: cloud, kind: s3, endpoint: %q, bucket: cloud, access_key: %s, secret_key: \"file:%s\", path_style: true, part_size: 5MiB}\n",
		w.store.front, storeKey, w.in("s3.secret"))
	return nil
}

// serve starts the S3 server, on what it had.
func (w *world) serve() (err error) {
	w.store.process, err = w.net.start(w.store.host, w.in("s3.log"), w.store.env, w.store.program, w.store.args...)
	return err
}

// startFront serves what nodes reach the S3 server by: it passes requests on, and fails some of them, before or after they
// were carried out.
func (w *world) startFront() error {
	address := w.store.host.addr + ":7080"
	w.store.front = "http://" + address
	to, err := url.Parse(w.store.url)
	if err != nil {
		return err
	}
	quiet := log.New(io.Discard, "", 0)
	pass := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
		Transport:     &http.Transport{DisableCompression: true},
		FlushInterval: -1, ErrorLog: quiet,
	}
	handler := http.HandlerFunc(func(a http.ResponseWriter, r *http.Request) {
		if rand.Int64N(1000) >= w.store.failing.Load() {
			pass.ServeHTTP(a, r)
			return
		}
		switch rand.IntN(4) {
		case 0:
			panic(http.ErrAbortHandler) // the connection breaks
		case 1:
			pass.ServeHTTP(httptest.NewRecorder(), r) // it is carried out, and nobody is told
			panic(http.ErrAbortHandler)
		case 2:
			a.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(a, "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>")
		default:
			a.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(a, "<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>")
		}
	})
	var l net.Listener
	if err := w.net.within(w.store.host, func() (err error) { l, err = net.Listen("tcp", address); return err }); err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, ErrorLog: quiet}
	served := make(chan struct{})
	go func() { _ = server.Serve(l); close(served) }()
	w.t.Cleanup(func() { _ = server.Close(); <-served })
	return nil
}

// startBox serves the emulator of Dropbox on a host of its own.
func (w *world) startBox() error {
	h, err := w.net.add("box", 204)
	if err != nil {
		return err
	}
	if err := errors.Join(os.Mkdir(w.in("box"), 0o700), os.WriteFile(w.in("box.token"), []byte(dropboxtest.DefaultRefreshToken), 0o600)); err != nil {
		return err
	}
	box, err := dropboxtest.New(dropboxtest.Options{Dir: w.in("box"), PageSize: 5})
	if err != nil {
		return err
	}
	var l net.Listener
	if err := w.net.within(h, func() (err error) { l, err = net.Listen("tcp", h.addr+":8080"); return err }); err != nil {
		return err
	}
	w.box = box
	server := &http.Server{Handler: box, ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	go func() { _ = server.Serve(l); close(served) }()
	w.t.Cleanup(func() { _ = server.Close(); <-served })
	w.storages += fmt.Sprintf("- {name: box, kind: dropbox, app_key: %s, refresh_token: \"file:%s\", folder: fp, endpoint: \"http://%s:8080\"}\n",
		dropboxtest.DefaultAppKey, w.in("box.token"), h.addr)
	return nil
}

// requests reads the logs of the S3 server and of Dropbox: what was done to which object, and with which status.
func (w *world) requests() (list []request, err error) {
	text, err := os.ReadFile(w.store.log)
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line) // owner, bucket, time, zone, address, user, id, operation, key, path, status
		if len(f) < 11 {
			continue
		}
		if status, err := strconv.Atoi(f[10]); err == nil {
			list = append(list, request{strings.TrimPrefix(f[7], "s3_"), "S3: " + f[8], status})
		}
	}
	for _, r := range w.box.Requests() {
		list = append(list, request{r.Route, "Dropbox: " + r.Path, r.Status})
	}
	return list, err
}
