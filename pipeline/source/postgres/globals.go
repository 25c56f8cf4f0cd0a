package postgres

import (
	"context"

	"github.com/fencepost/fencepost/pipeline/source"
)

// checkGlobals refuses password hashes to a role that may not read them: pg_dumpall would fail at the end.
func (d *dump) checkGlobals(ctx context.Context) error {
	if !d.filters.options.RolePasswords {
		return nil
	}
	var may bool
	if err := d.sess.QueryRow(ctx, `SELECT has_table_privilege('pg_authid', 'SELECT')`).Scan(&may); err != nil || may {
		return err
	}
	return d.src.errorf(problem{what: "the role may not read the passwords of roles", hint: "use a superuser, or leave the passwords out"},
		"prepare the dump of database %q", d.src.Database())
}

func (d *dump) globalsProduct() product {
	maintenance := d.src.maintenanceName()
	p := product{part: source.PartGlobals, program: d.globals, head: "--\n--", tail: "-- PostgreSQL database cluster dump complete", noun: "whole list of roles"}
	p.args = []string{"--globals-only", "--no-password", "--database=" + maintenance, "--dbname=" + d.src.where.conninfo(d.sess.at, maintenance, tag(d.attempt))}
	if !d.filters.options.RolePasswords {
		p.args = append(p.args, "--no-role-passwords")
	}
	return p
}
