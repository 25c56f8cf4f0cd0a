package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// Errors a caller branches on, besides those of package ledger.
var (
	// ErrForeign: the ledger belongs to another group. Open refuses it until Amend.
	ErrForeign = errors.New("ledger belongs to another group")
	// ErrFrozen: the ledger is an older copy of itself, or another one than before. Nothing is written to it until it was
	// reconciled. It comes together with ledger.ErrUnavailable, so that no task ends for it.
	ErrFrozen = errors.New("ledger is frozen")
	// ErrSetup: the ledger cannot be used as it is configured; a person has to change something. It comes together with
	// ledger.ErrUnavailable too: a password that was changed must not end a task.
	ErrSetup = errors.New("ledger cannot be used like this")
)

// Error is what went wrong, as one sentence without secrets. It matches its sentinels by errors.Is.
type Error struct {
	doing string
	what  string
	hint  string
	kinds []error
}

// Error returns the sentence.
func (e *Error) Error() string { return e.doing + ": " + e.what }

// Hint returns one sentence of advice, or "".
func (e *Error) Hint() string { return e.hint }

// Unwrap returns the sentinels that e matches.
func (e *Error) Unwrap() []error { return e.kinds }

// problem is an Error without what was being done.
type problem struct {
	what, hint string
	kinds      []error
}

func (p problem) Error() string { return p.what }

// wrap turns any error of a step into one that callers understand. Errors that were made by this package or by the rules
// keep their kind.
func wrap(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	if r, ok := errors.AsType[ruled](err); ok {
		return r.error
	}
	if p, ok := errors.AsType[problem](err); ok {
		return &Error{doing: doing, what: p.what, hint: p.hint, kinds: p.kinds}
	}
	if known(err) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if cause := context.Cause(ctx); cause != nil {
		return &Error{doing: doing, what: "no answer in time: " + cause.Error(), kinds: []error{ledger.ErrUnavailable, cause, ctx.Err()}}
	}
	p := explain(err)
	return &Error{doing: doing, what: p.what, hint: p.hint, kinds: p.kinds}
}

// known tells whether err is one of the contract's.
func known(err error) bool {
	for _, k := range []error{ledger.ErrFenced, ledger.ErrFinal, ledger.ErrNotFound, ledger.ErrExists, ledger.ErrUnavailable, ledger.ErrAhead} {
		if errors.Is(err, k) {
			return true
		}
	}
	return false
}

// ruled is an error of the rules of package ledger, or of a check of what was given: a whole sentence, passed on as it is.
type ruled struct{ error }

func (r ruled) Unwrap() error { return r.error }

// explain says what an error of the server or of the network means.
func explain(err error) problem {
	if p, ok := errors.AsType[problem](err); ok {
		return p
	}
	if errors.Is(err, errUnknown) {
		return away("the connection was lost while the write was being committed: read the row again", "")
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return explainCode(pg.Code, pg.Message)
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok || pgconn.SafeToRetry(err) || pgconn.Timeout(err) {
		return away("the server cannot be reached ("+innermost(err)+")", "check host, port and whether the server runs")
	}
	if lost(err) {
		return away("the connection to the server was lost", "")
	}
	return problem{what: innermost(err), kinds: []error{err}}
}

func away(what, hint string) problem {
	return problem{what, hint, []error{ledger.ErrUnavailable}}
}

func setup(what, hint string) problem {
	return problem{what, hint, []error{ErrSetup, ledger.ErrUnavailable}}
}

// explainCode says what a SQLSTATE means.
func explainCode(code, message string) problem {
	said := code + ": " + message
	switch {
	case code == "28P01", code == "28000":
		return setup("the server refuses the user or its password", "check user and password of ledger.dsn, and pg_hba.conf")
	case code == "3D000":
		return setup("the database does not exist", "create it: CREATE DATABASE ... OWNER <the ledger's user>")
	case code == "42501":
		return setup("the user lacks a right ("+message+")",
			"make the ledger's user the owner of the schema "+schema+", or GRANT CREATE ON DATABASE to it; all nodes use the same user")
	case strings.Contains(message, "unsupported startup parameter"):
		return pooled
	case code == "25006":
		return standby
	case code == "55P03":
		return away("another session holds a lock for too long", "look at pg_stat_activity for sessions that are idle in transaction")
	case code == "57014":
		return away("the server took too long", "")
	case code == "42P01", code == "3F000":
		return frozen("its tables are gone")
	case strings.HasPrefix(code, "22"), strings.HasPrefix(code, "23"), strings.HasPrefix(code, "42"):
		return problem{what: said} // what was asked is wrong, and will be the next time
	}
	return away("the server cannot do it now ("+said+")", "")
}

var (
	pooled = setup("there is a connection pooler between this node and the server",
		"give ledger.dsn the server's own address: advisory locks and the ending of sessions need sessions that belong to nobody else")
	standby = away("the server only reads: it is a standby, or read-only by a setting",
		"give ledger.dsn the primary, or all hosts that may be it: host=a,b")
)

// lost tells whether the connection broke, so that nothing is known of what was sent.
func lost(err error) bool {
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.SeverityUnlocalized == "FATAL" || pg.SeverityUnlocalized == "PANIC"
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		strings.Contains(err.Error(), "conn closed")
}

// again tells whether a try that committed nothing is worth another. (Two that make one row at the same moment: the
// second finds it there the next time.)
func again(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && (pg.Code == "40001" || pg.Code == "40P01" || pg.Code == "23505") {
		return true
	}
	return lost(err) || pgconn.SafeToRetry(err)
}

// missing tells whether a table is not there.
func missing(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == "42P01" || pg.Code == "3F000")
}

// innermost returns the last reason of an error: one line, no connection string.
func innermost(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return strings.ReplaceAll(err.Error(), "\n", " ")
		}
		err = next
	}
}
