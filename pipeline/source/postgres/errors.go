package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencepost/fencepost/pipeline/source"
)

// Error is what went wrong, as one sentence without secrets. It matches the sentinels of package source by errors.Is.
type Error struct {
	doing string // "dump database \"x\""
	what  string // "the server refuses the password"
	hint  string
	kinds []error // sentinels and causes
}

// Error returns the sentence.
func (e *Error) Error() string { return e.doing + ": " + e.what }

// Hint returns one sentence of advice, or "".
func (e *Error) Hint() string { return e.hint }

// Unwrap returns the sentinels that e matches, and the caller's own error when that was the reason.
func (e *Error) Unwrap() []error { return e.kinds }

// advised is what is wrong with a request, for others to say what was being done.
type advised struct{ what, hint string }

func (e *advised) Error() string { return e.what }

// Hint returns one sentence of advice.
func (e *advised) Hint() string { return e.hint }

// errNoDatabase: the server has no database of that name.
var errNoDatabase = errors.New("no such database")

// problem is what a failure means: the part of an Error that can be told without knowing what was being done.
type problem struct {
	what, hint string
	kinds      []error
}

func (s *Source) errorf(p problem, format string, args ...any) error {
	clean := s.where.secrets.clean
	return &Error{doing: clean(fmt.Sprintf(format, args...)), what: clean(p.what), hint: clean(p.hint), kinds: p.kinds}
}

// wrap turns any error of a step into an Error. An Error stays as it is; the end of ctx comes first.
func (s *Source) wrap(ctx context.Context, err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	if cause := context.Cause(ctx); cause != nil {
		return s.errorf(problem{what: cause.Error(), kinds: []error{cause, ctx.Err()}}, format, args...)
	}
	p := explain(err)
	if u, ok := errors.AsType[*unmatched](err); ok {
		p.hint = "check the name; upper and lower case count, and a name with a dot belongs in double quotes"
		p.what = u.Error()
	}
	for _, kind := range []error{source.ErrUnavailable, source.ErrIncomplete, source.ErrTargetExists, source.ErrSuperseded} {
		if errors.Is(err, kind) {
			p.kinds = append(p.kinds, kind)
		}
	}
	return s.errorf(p, format, args...)
}

// explain says what an error of pgx means.
func explain(err error) problem {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return explainCode(pg.Code, pg.Message)
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok || pgconn.SafeToRetry(err) || pgconn.Timeout(err) {
		return problem{"the server cannot be reached (" + lastPart(err) + ")", "check host, port and whether the server runs", []error{source.ErrUnavailable}}
	}
	if isLost(err) {
		return problem{"the connection to the server was lost", "", []error{source.ErrUnavailable}}
	}
	return problem{what: err.Error(), kinds: []error{err}}
}

// lastPart returns the innermost reason of a failed connection: one line, no connection string.
func lastPart(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			break
		}
		err = next
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) > 0 {
		return lastPart(joined.Unwrap()[0])
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

const (
	hintPassword     = "check user and password of the database in the settings, and the server's pg_hba.conf"
	hintRights       = "let the role read everything: GRANT pg_read_all_data TO role, or use the owner or a superuser"
	hintDisk         = "free space on the database server, then try again"
	hintRoles        = "create the role first, for example from the globals backup of the server"
	hintLost         = "see the server's log; the next attempt starts from the beginning"
	hintTablespace   = "make it on the server first (fencepost globals diff and restore), or restore with --no-tablespaces"
	hintOldExtension = "update the extension's package on the server"
	hintExtension    = "install the extension's package on the server"
	hintEncoding     = "install the locale on the server, or restore on a server that has it"
	hintInUse        = "disconnect its clients (prepared transactions and replication slots count too)"
	hintDepends      = "drop what was made since the backup, or restore into a new database"
	hintChosen       = "upper and lower case count, and a table is named without its schema, which is chosen beside it"
	hintLocks        = "raise max_locks_per_transaction and restart the server"
	hintConflict     = "set hot_standby_feedback = on or a larger max_standby_streaming_delay on the standby, or dump the primary"
	hintCancelled    = "somebody has cancelled it, or a time-out that is set for the role on the server; try again"
	hintNoDatabase   = "check the name of the database in the settings"
)

// errEnded marks the errors of programs whose sessions the server has ended.
var errEnded = errors.New("session was ended by the server")

const conflicted = "replay on the standby cancelled the dump: "

// explainCode says what an SQLSTATE means for a backup.
func explainCode(code, message string) problem {
	said := message + " (SQLSTATE " + code + ")"
	switch {
	case code == "28P01":
		return problem{"the server refuses the password", hintPassword, nil}
	case strings.HasPrefix(code, "28"):
		return problem{"the server refuses the user: " + said, hintPassword, nil}
	case code == "3D000":
		return problem{"the database does not exist: " + said, hintNoDatabase, []error{errNoDatabase}}
	case code == "42501":
		return problem{"the role lacks a right: " + said, hintRights, nil}
	case code == "53100":
		return problem{"the server's disk is full: " + said, hintDisk, nil}
	case code == "53300", strings.HasPrefix(code, "57P"), strings.HasPrefix(code, "08"):
		return problem{"the server refuses connections just now: " + said, "try again later", []error{source.ErrUnavailable}}
	case code == "40001" && strings.Contains(message, "conflict with recovery"):
		return problem{conflicted + said, hintConflict, []error{source.ErrUnavailable}}
	case code == "57014":
		return problem{"the server cancelled a statement: " + said, hintCancelled, nil}
	case code == "42704":
		return problem{"something that is needed does not exist: " + said, hintRoles, nil}
	case code == "55006":
		return problem{"the database is in use: " + said, hintInUse, nil}
	}
	return problem{what: "the server said: " + said}
}

// explainOutput says what the last words of a client program mean. Server messages may come in any language; what is
// not recognized is told as it is.
func explainOutput(program, output, status string) problem {
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(output, p) {
				return true
			}
		}
		return false
	}
	incomplete := []error{source.ErrIncomplete}
	switch {
	case has("No space left on device"):
		return problem{"the disk is full: " + lastError(output), hintDisk, incomplete}
	case has("password authentication failed", "no password supplied"):
		return problem{"the server refuses the password", hintPassword, incomplete}
	case has("permission denied", "row-level security", "must be owner", "must be superuser", "must be member"):
		return problem{"the role lacks a right: " + lastError(output), hintRights, incomplete}
	case has("due to conflict with recovery"): // first: it may end the statement, or the session too
		return problem{conflicted + lastError(output), hintConflict, append(incomplete, source.ErrUnavailable)}
	case has("terminating connection", "server closed the connection", "the database system is", "could not receive data from server", "no connection to the server"):
		return problem{"the server ended the session of " + program + ": " + lastError(output), hintLost, append(incomplete, errEnded)}
	case has("could not set default_tablespace") || has("tablespace \"") && has("does not exist"):
		return problem{"a tablespace is missing: " + lastError(output), hintTablespace, incomplete}
	case has("role \"") && has("does not exist"):
		return problem{"a role is missing: " + lastError(output), hintRoles, incomplete}
	case has("backslash commands are restricted", `\unrestrict: wrong key`):
		return problem{"the script holds a command for psql, which only a trusted person should run: " + lastError(output), "make it an SQL script, or run it yourself after reading it", incomplete}
	case has("because other objects depend on it"):
		return problem{"something in the database depends on what is to be replaced: " + lastError(output), hintDepends, incomplete}
	case has("out of shared memory"):
		return problem{"the server has no room for its locks: " + lastError(output), hintLocks, incomplete}
	case program == "pg_restore" && has("error: table \"", "error: schema \"") && has("\" not found"):
		return problem{"the backup holds nothing of that name: " + lastError(output), hintChosen, incomplete}
	case has("could not open extension control file", "is not available"):
		return problem{"an extension is missing: " + lastError(output), hintExtension, incomplete}
	case has("due to statement timeout", "due to lock timeout") && has("LOCK TABLE"):
		return problem{"somebody has waited for this dump to change a table, and was in its way: " + lastError(output), "dump when nobody changes tables, or without jobs",
			append(incomplete, source.ErrUnavailable)}
	case has("invalid snapshot identifier"):
		return problem{"the snapshot's session ended", hintLost, append(incomplete, errEnded)}
	}
	what := program + " ended with " + status
	if line := lastError(output); line != "" {
		what += ": " + line
	}
	return problem{what: what, kinds: incomplete}
}

// isError says whether a line of a client program tells an error: its own, or one of the server that psql passes on.
func isError(line string) bool {
	return strings.Contains(line, "error:") || strings.Contains(line, "ERROR:  ") || strings.Contains(line, "FATAL:  ")
}

// lastError returns the last line that a client program marked as error, else its last line. That a worker of pg_restore is
// gone is no error of its own: what that worker said before is.
func lastError(output string) string {
	var last string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if isError(last) && strings.Contains(line, "a worker process died unexpectedly") {
			continue
		}
		if isError(line) || last == "" || !isError(last) {
			if line != "" {
				last = line
			}
		}
	}
	return last
}
