package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencepost/fencepost/pipeline/source"
)

// GlobalsUse says what of the server (roles, tablespaces) goes with a dump of a database.
type GlobalsUse string

// What goes with a dump.
const (
	GlobalsPlain     GlobalsUse = ""          // all but the hashes of passwords, which any role may read
	GlobalsPasswords GlobalsUse = "passwords" // these too, which takes a superuser; a secret
	GlobalsNone      GlobalsUse = "none"      // nothing
)

// findGlobals looks whether PartGlobals can be made, so that it is known before the first byte. Without it a dump is good
// all the same, and says so; only passwords that were asked for and may not be read are an error.
func (d *dump) findGlobals(ctx context.Context, need int) error {
	o := d.filters.options
	if o.NoGlobals {
		return nil
	}
	d.info.Globals = &source.Globals{Passwords: o.RolePasswords}
	what, err := d.unreadableGlobals(ctx, o.RolePasswords)
	switch {
	case err != nil:
		return err
	case what != "" && o.RolePasswords:
		return d.src.errorf(problem{what: "the role may not read the passwords of roles (" + what + ")", hint: "use a superuser, or leave the passwords out"},
			"prepare the dump of database %q", d.src.Database())
	case what != "":
		d.lackGlobals(ctx, "the role may not read "+what)
		return nil
	}
	if d.globals, err = d.src.findTool(ctx, "pg_dumpall", need); err != nil {
		lack, ok := errors.AsType[*Error](err)
		if !ok || ctx.Err() != nil {
			return err
		}
		d.lackGlobals(ctx, lack.what)
	}
	return nil
}

func (d *dump) lackGlobals(ctx context.Context, why string) {
	d.globals, d.info.Globals = tool{}, &source.Globals{Lacking: why}
	d.src.log.WarnContext(ctx, "the backup has no roles and tablespaces of the server", "database", d.src.Database(), "why", why)
}

func (d *dump) hasGlobals() bool { return d.globals.path != "" }

// unreadableGlobals names what pg_dumpall reads and the role may not; "" when there is nothing.
func (d *dump) unreadableGlobals(ctx context.Context, passwords bool) (names string, err error) {
	roles := "pg_roles"
	if passwords {
		roles = "pg_authid"
	}
	err = d.sess.QueryRow(ctx, `SELECT coalesce(string_agg(name, ', '), '') FROM unnest($1::text[]) AS name
		WHERE to_regclass('pg_catalog.' || name) IS NOT NULL AND NOT has_table_privilege('pg_catalog.' || name, 'SELECT')`,
		[]string{roles, "pg_auth_members", "pg_tablespace", "pg_db_role_setting", "pg_shdescription", "pg_shseclabel", "pg_parameter_acl"}).Scan(&names)
	return names, err
}

func (d *dump) globalsProduct() product {
	p := product{part: source.PartGlobals, program: d.globals, head: "--\n--", tail: "-- PostgreSQL database cluster dump complete", noun: "whole list of roles"}
	database := fmt.Sprintf("dbname='%s'", conninfoEscaper.Replace(d.src.Database())) // bare, some names would be read as connection strings
	p.args = []string{"--globals-only", "--no-password", "--database=" + database, "--dbname=" + d.src.where.conninfo(d.sess.at, d.src.Database(), tag(d.attempt))}
	if !d.filters.options.RolePasswords {
		p.args = append(p.args, "--no-role-passwords")
	}
	return p
}
