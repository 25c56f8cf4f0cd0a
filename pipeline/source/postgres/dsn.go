package postgres

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// where is a parsed DSN: for this process as pgx wants it, for children as libpq wants it.
type where struct {
	base    *pgx.ConnConfig
	libpq   map[string]string // what children must know besides address, user, password and database
	secrets redactor
	limits  *atomic.Pointer[string] // options for children that lift the time-outs of the role, its database or the server
}

// address is one place where the server may listen, pinned so that a child reaches the same server as we did.
type address struct {
	host string
	port uint16
}

// passedOn are the libpq settings that a DSN may give and that a child gets too. Everything else in a DSN is either set
// by us or known to pgx only.
var passedOn = []string{
	"channel_binding", "gssencmode", "krbsrvname", "options", "require_auth", "sslcert", "sslcertmode", "sslcrl", "sslkey", "sslmode",
	"sslnegotiation", "sslrootcert", "sslsni", "ssl_min_protocol_version", "ssl_max_protocol_version", "target_session_attrs", "service",
}

// ourOwn are settings that only this package decides.
var ourOwn = []string{"application_name", "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "search_path"}

func parseDSN(dsn string, timeout time.Duration) (where, error) {
	settings, err := dsnSettings(dsn)
	if err != nil {
		return where{}, err
	}
	if settings["sslpassword"] != "" || os.Getenv("PGSSLPASSWORD") != "" {
		return where{}, errors.New("sslpassword cannot be handed to child processes in secret: use a key file without one")
	}
	base, err := pgx.ParseConfig(dsn)
	if err != nil {
		// pgx quotes the string, and hides the password only where it can parse it.
		return where{}, fmt.Errorf("read the DSN: %s", redactor{settings["password"]}.clean(parseProblem(err)))
	}
	if base.Database == "" {
		return where{}, errors.New("the DSN names no database")
	}
	for _, name := range ourOwn {
		delete(base.RuntimeParams, name)
	}
	base.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec // no prepared statements to leave behind
	base.ConnectTimeout = connectTimeout(timeout, base.ConnectTimeout, settings)
	w := where{base: base, libpq: map[string]string{}, secrets: redactor{base.Password, settings["password"]}, limits: new(atomic.Pointer[string])}
	for _, name := range passedOn {
		if v := settings[name]; v != "" {
			w.libpq[name] = v
		}
	}
	return w, nil
}

// parseProblem returns why pgx refuses a DSN, without the DSN.
func parseProblem(err error) string {
	if parse, ok := errors.AsType[*pgconn.ParseConfigError](err); ok && errors.Unwrap(parse) != nil {
		return errors.Unwrap(parse).Error()
	}
	return "it is not a connection URL or keyword=value string"
}

// connectTimeout: ours, else what was asked for, else the default (pgx reports its own default of two minutes).
func connectTimeout(ours, parsed time.Duration, settings map[string]string) time.Duration {
	switch {
	case ours > 0:
		return ours
	case settings["connect_timeout"] != "" || os.Getenv("PGCONNECT_TIMEOUT") != "":
		return parsed
	}
	return defaultConnectTimeout
}

// String is the address as people write it.
func (a address) String() string { return net.JoinHostPort(a.host, strconv.Itoa(int(a.port))) }

// addresses lists the places to try, in order, each once.
func (w where) addresses() []address {
	all := []address{{w.base.Host, w.base.Port}}
	for _, f := range w.base.Fallbacks {
		if a := (address{f.Host, f.Port}); !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all
}

// config returns the pgx configuration for one address and database. TLS variants of the same address remain.
func (w where) config(at address, database, name string) *pgx.ConnConfig {
	c := w.base.Copy()
	var same []*pgconn.FallbackConfig
	if at.host == c.Host && at.port == c.Port {
		same = append(same, &pgconn.FallbackConfig{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig})
	}
	for _, f := range c.Fallbacks {
		if f.Host == at.host && f.Port == at.port {
			same = append(same, f)
		}
	}
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = at.host, at.port, same[0].TLSConfig, same[1:]
	c.Database = database
	c.RuntimeParams["application_name"] = name
	return c
}

// conninfo returns what a child gets as its dbname argument. Any database name is safe in it: libpq does not look for
// a connection string inside a quoted value.
func (w where) conninfo(at address, database, name string) string {
	settings := map[string]string{
		"connect_timeout": strconv.Itoa(max(2, int(w.base.ConnectTimeout/time.Second))), "keepalives_idle": "30",
		"keepalives_interval": "10", "keepalives_count": "6",
	}
	for key, value := range w.libpq {
		settings[key] = value
	}
	if lifted := w.limits.Load(); lifted != nil { // the client programs lift some by themselves, and each others
		settings["options"] = strings.TrimSpace(settings["options"] + " " + *lifted)
	}
	settings["host"], settings["port"] = at.host, strconv.Itoa(int(at.port))
	settings["user"], settings["dbname"], settings["application_name"] = w.base.User, database, name
	var b strings.Builder
	for _, key := range sortedKeys(settings) {
		fmt.Fprintf(&b, "%s='%s' ", key, conninfoEscaper.Replace(settings[key]))
	}
	return strings.TrimSuffix(b.String(), " ")
}

var conninfoEscaper = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

// writing is where for a child that changes something: of a name that stands for several servers it takes the primary.
func (w where) writing() where {
	w.libpq = maps.Clone(w.libpq)
	w.libpq["target_session_attrs"] = "read-write"
	return w
}

// environ returns the environment of a child: ours, the password, messages in English (we recognize some), and none of
// what could contradict its arguments.
func (w where) environ() []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if name != "PGPASSWORD" && name != "PGDATABASE" && name != "PGHOSTADDR" && name != "PGAPPNAME" && name != "PGOPTIONS" && !strings.HasPrefix(name, "LC_") {
			env = append(env, kv)
		}
	}
	env = append(env, "LC_ALL=C")
	if w.base.Password != "" {
		env = append(env, "PGPASSWORD="+w.base.Password)
	}
	return env
}

// dsnSettings reads a DSN into its settings, as libpq does. Only settings that pgx does not report are taken from it.
func dsnSettings(dsn string) (map[string]string, error) {
	if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		return urlSettings(dsn)
	}
	return keywordSettings(dsn)
}

func urlSettings(dsn string) (map[string]string, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, errors.New("read the DSN: it is not a valid URL (special characters in a password must be %-encoded)")
	}
	settings := map[string]string{}
	for key, values := range u.Query() {
		settings[key] = values[0]
	}
	if password, ok := u.User.Password(); ok {
		settings["password"] = password
	}
	return settings, nil
}

func keywordSettings(dsn string) (map[string]string, error) {
	settings := map[string]string{}
	for rest := strings.TrimSpace(dsn); rest != ""; rest = strings.TrimSpace(rest) {
		key, after, ok := strings.Cut(rest, "=")
		if !ok {
			return nil, errors.New(`read the DSN: a keyword has no "="`)
		}
		var value string
		value, rest, ok = keywordValue(strings.TrimLeft(after, " \t\r\n"))
		if !ok {
			return nil, errors.New("read the DSN: a quoted value does not end")
		}
		settings[strings.TrimSpace(key)] = value
	}
	return settings, nil
}

// keywordValue reads one value, quoted or not, and returns what follows it.
func keywordValue(s string) (value, rest string, ok bool) {
	quoted := strings.HasPrefix(s, "'")
	if quoted {
		s = s[1:]
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case quoted && c == '\'', !quoted && strings.IndexByte(" \t\r\n", c) >= 0:
			return b.String(), s[i+1:], true
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), "", !quoted
}
