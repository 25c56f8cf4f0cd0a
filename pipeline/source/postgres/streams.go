package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/source"
)

// maxNamed bounds how many tables are moved out of the first stream: their names are arguments of pg_dump. Beyond the
// largest ones it does not matter where a table is.
const maxNamed = 500

// sizedTable is a table with rows, and how much room they take.
type sizedTable struct {
	schema, name string
	bytes        int64
}

// divide spreads tables over n streams by size: the largest first, each to the stream that has least so far. The first
// stream begins with rest, the size of all that cannot be moved, and needs no list: it holds whatever no other stream
// names, so that nothing can be forgotten. The lists of the further streams are returned, without empty ones.
func divide(tables []sizedTable, rest int64, n int) [][]sizedTable {
	load := make([]int64, n)
	load[0] = rest
	lists := make([][]sizedTable, n)
	for _, t := range tables {
		least := 0
		for i := range load {
			if load[i] < load[least] {
				least = i
			}
		}
		load[least] += t.bytes
		lists[least] = append(lists[least], t)
	}
	var out [][]sizedTable
	for _, list := range lists[1:] {
		if len(list) > 0 {
			out = append(out, list)
		}
	}
	return out
}

// named are patterns of pg_dump that match just these tables: one for each schema, since pg_dump runs a query for each.
func named(tables []sizedTable) []string {
	bySchema := map[string][]string{}
	for _, t := range tables {
		bySchema[t.schema] = append(bySchema[t.schema], words{{text: t.name}}.glob())
	}
	var out []string
	for _, schema := range sortedKeys(bySchema) {
		out = append(out, words{{text: schema}}.glob()+".("+strings.Join(bySchema[schema], "|")+")")
	}
	return out
}

// sizesQuery lists the tables whose rows can be moved to a stream of their own, the largest first, and the size of all
// that cannot. Names that are not ASCII stay, since pg_dump reads its arguments in an encoding that is not ours to choose; so do
// tables of extensions, which pg_dump treats in its own way.
const sizesQuery = `WITH t AS (
	SELECT nspname, relname, coalesce(pg_table_size(c.oid), 0) AS bytes, nspname ~ '^[ -~]+$' AND relname ~ '^[ -~]+$'
		AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e') AS movable
	FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
	WHERE relkind = 'r' AND nspname !~ '^pg_' AND nspname <> 'information_schema' AND NOT (nspname = 'fencepost' AND relname = 'attempt')
	AND NOT EXISTS (SELECT FROM unnest($7::text[], $8::text[]) AS f (s, r) WHERE nspname ~ s AND relname ~ r) AND ` + selected + `),
moved AS (SELECT * FROM t WHERE movable ORDER BY bytes DESC, nspname, relname LIMIT $9)
SELECT nspname, relname, bytes FROM moved
UNION ALL SELECT '', '', (SELECT coalesce(sum(bytes), 0) FROM t)::bigint - (SELECT coalesce(sum(bytes), 0) FROM moved)::bigint
	+ CASE WHEN $10 THEN pg_table_size('pg_largeobject') ELSE 0 END ORDER BY 3 DESC, 1, 2`

// divideRows decides which stream has which table, and holds all tables until the dump is closed: one that was altered or
// emptied between the beginning of two streams would not be the same in both.
func (d *dump) divideRows(ctx context.Context) error {
	jobs := d.filters.options.Jobs
	if jobs < 2 || d.filters.options.SchemaOnly {
		return nil
	}
	if err := d.lockTables(ctx); err != nil {
		return err
	}
	args := append(d.filters.sqlArgs(), schemaRegexes(d.filters.exRows), nameRegexes(d.filters.exRows), maxNamed, d.filters.blobs)
	rows, err := d.sess.Query(ctx, sizesQuery, args...)
	if err != nil {
		return err
	}
	tables, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t sizedTable, err error) {
		return t, row.Scan(&t.schema, &t.name, &t.bytes)
	})
	if err != nil {
		return err
	}
	var rest int64
	for i, t := range tables {
		if t.name == "" {
			rest = t.bytes
			tables = append(tables[:i], tables[i+1:]...)
			break
		}
	}
	d.streams = divide(tables, rest, jobs)
	d.info.Streams = 1 + len(d.streams)
	return nil
}

// tablesQuery lists what pg_dump locks.
const tablesQuery = `SELECT format('%I.%I', nspname, relname) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
	WHERE relkind IN ('r', 'p') AND nspname !~ '^pg_' AND nspname <> 'information_schema' AND NOT (nspname = 'fencepost' AND relname = 'attempt')
	AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e') AND ` + selected + ` ORDER BY 1`

// lockTables takes the lock of a reader on every table of the dump.
func (d *dump) lockTables(ctx context.Context) error {
	tables, err := texts(ctx, d.sess, tablesQuery, d.filters.sqlArgs()...)
	if err != nil {
		return err
	}
	for len(tables) > 0 {
		n := min(len(tables), maxNamed)
		if _, err := d.sess.Exec(ctx, `LOCK TABLE ONLY `+strings.Join(tables[:n], `, ONLY `)+` IN ACCESS SHARE MODE`); err != nil {
			return err
		}
		tables = tables[n:]
	}
	return nil
}

// streamsLockWait is how long a stream may wait for a lock that this dump's own session has: somebody who wants to change
// the table stands in between, and would for ever.
const streamsLockWait = time.Minute

// streamProduct is one of several archives: a section, and of the rows those of some tables.
func (d *dump) streamProduct(part string) (product, bool) {
	p := d.archiveProduct(part)
	var own []string
	switch {
	case part == source.PartPre || part == source.PartPost:
		own = append(d.filters.args(), "--section="+part)
	case part == source.PartData:
		own = append(d.filters.args(), "--section=data")
		for _, list := range d.streams {
			for _, pattern := range named(list) {
				own = append(own, "--exclude-table-data="+pattern)
			}
		}
	default:
		list, ok := d.further(part)
		if !ok {
			return p, false
		}
		own = []string{"--strict-names", "--section=data", "-B"}
		for _, pattern := range named(list) {
			own = append(own, "--table="+pattern)
		}
	}
	p.args = append(append(p.args, own...), fmt.Sprintf("--lock-wait-timeout=%d", d.src.lockWait.Milliseconds()))
	return p, true
}

// further are the tables of a stream but the first.
func (d *dump) further(part string) ([]sizedTable, bool) {
	for i, list := range d.streams {
		if part == streamName(i+2) {
			return list, true
		}
	}
	return nil, false
}

// checkJobs refuses a number of streams that cannot be.
func checkJobs(jobs int) error {
	if jobs < 0 || jobs > source.MaxStreams {
		return fmt.Errorf("jobs is %d: at least 0, at most %d", jobs, source.MaxStreams)
	}
	return nil
}
