package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/source"
)

// checkNeeds finds out whether a server has the extensions, of versions that will do, and the roles that a backup needs.
func (s *Source) checkNeeds(ctx context.Context, conn *session, o source.RestoreOptions, doing string) error {
	missing, err := texts(ctx, conn, `SELECT name FROM unnest($1::text[]) AS name WHERE name NOT IN (SELECT name FROM pg_available_extensions) ORDER BY 1`,
		sortedKeys(o.Info.Extensions))
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return s.errorf(problem{what: "the server lacks extension " + strings.Join(missing, ", "), hint: hintExtension}, "%s", doing)
	}
	if err := s.checkExtensions(ctx, conn, o.Info.Extensions, doing); err != nil {
		return err
	}
	if o.NoOwner && o.NoPrivileges {
		return nil
	}
	missing, err = texts(ctx, conn, `SELECT name FROM unnest($1::text[]) AS name WHERE name NOT IN (SELECT rolname FROM pg_roles) ORDER BY 1`, o.Info.Roles)
	if err != nil || len(missing) == 0 {
		return err
	}
	hint := "create the roles first, from the globals backup of the server or by CREATE ROLE " + ident(missing[0]) + "; or restore without owners and rights"
	return s.errorf(problem{what: "the server lacks role " + strings.Join(missing, ", "), hint: hint}, "%s", doing)
}

// checkExtensions compares versions: a dump does not name them, so that the server's default one is installed.
func (s *Source) checkExtensions(ctx context.Context, conn *session, wanted map[string]string, doing string) error {
	rows, err := conn.Query(ctx, `SELECT name, coalesce(default_version, '') FROM pg_available_extensions WHERE name = ANY($1) ORDER BY 1`,
		sortedKeys(wanted))
	if err != nil {
		return err
	}
	var old []string
	err = eachPair(rows, func(name, version string) {
		if olderExtension(version, wanted[name]) {
			old = append(old, fmt.Sprintf("%s %s (the backup was made with %s)", name, version, wanted[name]))
		}
	})
	if err != nil || len(old) == 0 {
		return err
	}
	return s.errorf(problem{what: "the server has an older extension: " + strings.Join(old, ", "), hint: hintOldExtension}, "%s", doing)
}

// olderExtension compares the first two numbers of versions, which is where what an extension has changes. What is written in
// another way is not compared.
func olderExtension(have, want string) bool {
	h, w := strings.SplitN(have, ".", 3), strings.SplitN(want, ".", 3)
	for i := range min(2, len(h), len(w)) {
		a, err := strconv.Atoi(h[i])
		b, err2 := strconv.Atoi(w[i])
		if err != nil || err2 != nil {
			return false
		}
		if a != b {
			return a < b
		}
	}
	return false
}

// maxListed bounds the lists in Info, which ledgers keep.
const maxListed = 500

// listed is what a query selects, or nil when that is too much to list.
func listed(ctx context.Context, conn *session, query string, args ...any) ([]string, error) {
	all, err := texts(ctx, conn, query, args...)
	if len(all) > maxListed {
		return nil, err
	}
	return all, err
}

// texts returns the rows of one text each that a query selects.
func texts(ctx context.Context, conn *session, query string, args ...any) ([]string, error) {
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// rolesQuery lists the roles that own something in a database or have rights on it. The first role of a server is in no
// catalog of dependencies.
const rolesQuery = `SELECT rolname FROM pg_roles WHERE oid IN (
		SELECT refobjid FROM pg_shdepend WHERE refclassid = 'pg_authid'::regclass AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
		UNION SELECT datdba FROM pg_database WHERE datname = current_database()
		UNION SELECT relowner FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
		UNION SELECT proowner FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
		UNION SELECT nspowner FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname NOT IN ('information_schema', 'public')
		UNION SELECT lomowner FROM pg_largeobject_metadata
		UNION SELECT grantee FROM pg_database, aclexplode(datacl) WHERE datname = current_database()
		UNION SELECT setrole FROM pg_db_role_setting WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database()))
	AND rolname !~ '^pg_' ORDER BY 1`
