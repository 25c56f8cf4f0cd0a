package postgres

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// schema is where the ledger's tables live.
const schema = "fencepost_ledger"

// minVersion is the oldest server that is known to do all that is asked of it.
const minVersion = 130000

// settings are made in each session, where the server knows them. A role's or a database's own time-outs do not apply.
//
// A session that its process left inside a transaction is ended by the server after idle_in_transaction_session_timeout,
// one whose network is gone after tcp_user_timeout; nothing waits for a lock, or runs, for longer than a call may take.
// synchronous_commit is never weaker than on: what a worker was told is stored is stored.
const settings = `SELECT set_config(s.name, v.value, false)
FROM pg_settings s JOIN (VALUES
	('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END),
	('idle_in_transaction_session_timeout', '10s'),
	('idle_session_timeout', '0'),
	('transaction_timeout', '0'),
	('lock_timeout', '10s'),
	('statement_timeout', '30s'),
	('tcp_user_timeout', '10s'),
	('tcp_keepalives_idle', '10'),
	('tcp_keepalives_interval', '5'),
	('tcp_keepalives_count', '3'),
	('default_transaction_isolation', 'read committed'),
	('search_path', '` + schema + `'),
	('TimeZone', 'UTC')
) v (name, value) ON v.name = s.name`

// facts is what a new session tells about the server.
type facts struct {
	version   int
	recovery  bool // a standby
	readOnly  bool
	pid       uint32 // of the process that serves the session
	announced uint32 // the one that the other end named when it took the connection
}

// problem says why a ledger cannot live there; nil when it can. A pooler makes up the process id that it announces, since
// it does not know yet who will serve; a server tells its own.
func (f facts) problem() error {
	switch {
	case f.version < minVersion:
		return setup(fmt.Sprintf("the server is PostgreSQL %d: need at least %d", f.version/10000, minVersion/10000),
			"upgrade the server of ledger.dsn, or use another one")
	case f.pid != f.announced:
		return pooled
	case f.recovery || f.readOnly:
		return standby
	}
	return nil
}

// poolConfig reads the DSN. Its errors tell neither the DSN nor the password.
func poolConfig(c Config) (*pgxpool.Config, error) {
	pc, err := pgxpool.ParseConfig(c.DSN)
	if err != nil {
		// The parser quotes what it could not read, the password with it.
		return nil, setup("ledger.dsn is not a connection string",
			"write postgres://user@host:5432/database or host=... dbname=..., special characters of the password percent-encoded")
	}
	pc.MaxConns, pc.MinConns = int32(c.MaxConns), 0
	pc.MaxConnIdleTime = 5 * time.Minute
	for name := range pc.ConnConfig.RuntimeParams {
		delete(pc.ConnConfig.RuntimeParams, name) // what matters is set when the session begins
	}
	pc.ConnConfig.RuntimeParams["application_name"] = "fencepost ledger"
	pc.ConnConfig.RuntimeParams["statement_timeout"] = "30s" // a role's own could end even the making of the settings
	dialer := net.Dialer{Timeout: c.Timeout, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}}
	pc.ConnConfig.DialFunc = dialer.DialContext
	if severalServers(pc.ConnConfig) && pc.ConnConfig.ValidateConnect == nil {
		pc.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if pc.ConnConfig.ConnectTimeout > c.Timeout || pc.ConnConfig.ConnectTimeout == 0 {
		pc.ConnConfig.ConnectTimeout = c.Timeout
	}
	return pc, nil
}

// severalServers tells whether the DSN names more than one: the primary among them is looked for. (The alternatives may
// also be the same server with and without TLS.)
func severalServers(c *pgx.ConnConfig) bool {
	return slices.ContainsFunc(c.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.Host != c.Host || f.Port != c.Port })
}

// begin makes the settings of a new session and looks at the server behind it.
func begin(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, settings); err != nil {
		return fmt.Errorf("make the session's settings: %w", err)
	}
	f := facts{announced: conn.PgConn().PID()}
	err := conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, pg_is_in_recovery(),
		current_setting('transaction_read_only') = 'on', pg_backend_pid()`).Scan(&f.version, &f.recovery, &f.readOnly, &f.pid)
	if err != nil {
		return fmt.Errorf("ask the server what it is: %w", err)
	}
	return f.problem()
}
