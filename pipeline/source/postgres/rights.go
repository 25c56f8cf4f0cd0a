package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/source"
)

// unreadable lists what the role may not read although a dump has to: tables and sequences (but those of extensions,
// whose rows are dumped only when the extension says so), their schemas, large objects, and tables whose policies would
// hide rows; and subscriptions, which only a superuser can dump. pg_dump is the judge in the end; this finds it out before hours have passed, and names it.
const unreadable = `
WITH me AS (SELECT oid, rolsuper FROM pg_roles WHERE rolname = current_user),
dumped AS (
	SELECT c.oid, relkind, relnamespace, relrowsecurity, format('%I.%I', nspname, relname) AS name
	FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
	WHERE relkind IN ('r', 'p', 'S') AND nspname !~ '^pg_' AND nspname <> 'information_schema'
	AND NOT (nspname = 'fencepost' AND relname = 'attempt')
	AND NOT EXISTS (SELECT FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
		WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e' AND c.oid <> ALL (coalesce(extconfig, '{}')))
	AND ` + selected + `)
SELECT CASE relkind WHEN 'S' THEN 'sequence ' ELSE 'table ' END || name FROM dumped
WHERE NOT has_schema_privilege(relnamespace, 'USAGE')
	OR NOT CASE relkind WHEN 'S' THEN has_sequence_privilege(oid, 'SELECT') ELSE has_table_privilege(oid, 'SELECT') END
UNION ALL
SELECT 'rows of ' || name || ' (row security)' FROM dumped WHERE relrowsecurity AND row_security_active(oid)
UNION ALL
SELECT 'large object ' || l.oid FROM pg_largeobject_metadata l, me
WHERE $7 AND NOT rolsuper AND current_setting('lo_compat_privileges') = 'off' AND NOT pg_has_role(lomowner, 'USAGE')
	AND NOT EXISTS (SELECT FROM aclexplode(lomacl) WHERE privilege_type = 'SELECT' AND (grantee = 0 OR pg_has_role(grantee, 'USAGE')))
UNION ALL
SELECT 'subscription ' || subname FROM pg_subscription, me
WHERE $8 AND NOT rolsuper AND subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())`

// shownFaults bounds how many things one error names.
const shownFaults = 3

func (s *Source) checkRights(ctx context.Context, conn *session, f filters) error {
	rows, err := conn.Query(ctx, unreadable, append(f.sqlArgs(), f.blobs, f.subscriptions)...)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(names) == 0 {
		return err
	}
	what := "the role may not read " + strings.Join(names[:min(shownFaults, len(names))], ", ")
	if more := len(names) - shownFaults; more > 0 {
		what += fmt.Sprintf(" and %d more", more)
	}
	hint := fmt.Sprintf("run GRANT pg_read_all_data TO %s; tables with row security need BYPASSRLS, large objects their owner or a superuser; subscriptions need a superuser, or to be left out",
		pgx.Identifier{s.where.base.User}.Sanitize())
	return s.errorf(problem{what: what, hint: hint}, "prepare the dump of database %q", s.Database())
}

// eachPair calls f for each row of two texts.
func eachPair(rows pgx.Rows, f func(a, b string)) error {
	var a, b string
	_, err := pgx.ForEachRow(rows, []any{&a, &b}, func() error {
		f(a, b)
		return nil
	})
	return err
}

// speaksTo says whether a pg_restore can restore into a server: since version 17 it begins with a setting that older
// servers do not know. An archive that only it can read cannot go there. Ok when it can.
func speaksTo(t tool, server string) (problem, bool) {
	const sets = 17 // transaction_timeout
	if have := majorOf(server); t.major() >= sets && have < sets {
		return problem{
			what: fmt.Sprintf("pg_restore %s, which the backup needs or which alone is installed, cannot restore into PostgreSQL %d", t.version, have),
			hint: fmt.Sprintf("install the client programs of version %d, or if the backup was made by newer ones, restore on a server of version %d or newer", have, t.major()),
		}, false
	}
	return problem{}, true
}

// oldestServer is the first version that can drop a database with its sessions in one step.
const oldestServer = 13

// versionFits refuses a restore that PostgreSQL does not support: into an older major version.
func versionFits(server string, info source.Info) (problem, bool) {
	if have := majorOf(server); have < oldestServer {
		return problem{
			what: fmt.Sprintf("the server is PostgreSQL %d", have),
			hint: fmt.Sprintf("restore on a server of version %d or newer", oldestServer),
		}, false
	}
	if have, want := majorOf(server), majorOf(info.ServerVersion); want > have {
		return problem{
			what: fmt.Sprintf("the backup is of PostgreSQL %d and the server is %d", want, have),
			hint: fmt.Sprintf("restore on a server of version %d or newer", want),
		}, false
	}
	return problem{}, true
}
