package postgres

import (
	"context"
	"fmt"
	"maps"

	"github.com/fencepost/fencepost/pipeline/source"
)

// countQuery counts what a dump carries, by kind. Left out is what pg_dump leaves to others: members of extensions,
// temporary objects, the catalogs, the schema "public" (the template has it), indexes that are being built,
// what the server clones for partitions (it does so differently from version to version).
const countQuery = `
WITH n AS (SELECT oid, nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' AND ` + notOurs + `),
member AS (SELECT classid, objid FROM pg_depend WHERE deptype = 'e'),
rel AS (SELECT c.oid, relkind FROM pg_class c JOIN n ON n.oid = relnamespace
	WHERE NOT EXISTS (SELECT FROM member WHERE classid = 'pg_class'::regclass AND objid = c.oid) AND NOT (nspname = 'fencepost' AND relname = 'attempt'))
SELECT kind, count(*) FROM (
	SELECT CASE relkind WHEN 'r' THEN 'tables' WHEN 'p' THEN 'partitioned tables' WHEN 'v' THEN 'views' WHEN 'm' THEN 'materialized views'
		WHEN 'S' THEN 'sequences' WHEN 'f' THEN 'foreign tables' WHEN 'c' THEN 'composite types' END AS kind
	FROM rel WHERE relkind IN ('r', 'p', 'v', 'm', 'S', 'f', 'c')
	UNION ALL SELECT 'columns' FROM pg_attribute a JOIN rel ON rel.oid = attrelid
		WHERE relkind IN ('r', 'p', 'v', 'm', 'f', 'c') AND attnum > 0 AND NOT attisdropped
	UNION ALL SELECT 'indexes' FROM pg_index JOIN rel ON rel.oid = indrelid WHERE indisvalid
	UNION ALL SELECT 'constraints' FROM pg_constraint JOIN rel ON rel.oid = conrelid WHERE contype IN ('c', 'f', 'p', 'u', 'x') AND conparentid = 0
	UNION ALL SELECT 'triggers' FROM pg_trigger t JOIN rel ON rel.oid = tgrelid
		WHERE NOT tgisinternal AND coalesce(to_jsonb(t) ->> 'tgparentid', '0') = '0'
	UNION ALL SELECT 'policies' FROM pg_policy JOIN rel ON rel.oid = polrelid
	UNION ALL SELECT 'routines' FROM pg_proc p JOIN n ON n.oid = pronamespace
		WHERE NOT EXISTS (SELECT FROM member WHERE classid = 'pg_proc'::regclass AND objid = p.oid)
		AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'i')
	UNION ALL SELECT 'enums and domains' FROM pg_type t JOIN n ON n.oid = typnamespace
		WHERE typtype IN ('e', 'd') AND NOT EXISTS (SELECT FROM member WHERE classid = 'pg_type'::regclass AND objid = t.oid)
	UNION ALL SELECT 'schemas' FROM n WHERE nspname <> 'public'
		AND NOT EXISTS (SELECT FROM member WHERE classid = 'pg_namespace'::regclass AND objid = n.oid)
	UNION ALL SELECT 'extensions' FROM pg_extension
	UNION ALL SELECT 'large objects' FROM pg_largeobject_metadata
) AS one GROUP BY kind`

// notOurs leaves out the schema that a restore in place made in its target, when nobody put anything else into it.
const notOurs = `NOT (nspname = 'fencepost' AND EXISTS (SELECT FROM pg_class WHERE relnamespace = pg_namespace.oid AND relname = 'attempt')
	AND NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = pg_namespace.oid AND relkind <> 'i' AND relname <> 'attempt'))`

// countObjects counts the objects of the database in which conn is, by countQuery or another query of kind and number.
func countObjects(ctx context.Context, conn *session, query string, args ...any) (map[string]int64, error) {
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counts := map[string]int64{}
	for rows.Next() {
		var kind string
		var n int64
		if err := rows.Scan(&kind, &n); err != nil {
			return nil, err
		}
		counts[kind] = n
	}
	return counts, rows.Err()
}

// expected are the counts that a restored database is compared with.
type expected struct {
	counts  map[string]int64
	partial bool // kinds that are not among counts were not counted
	lists   map[string]string
}

// expect says what a restore of a backup with this script must yield. What was chosen at the restore is not counted.
func expect(s script, c source.RestoreChoices) expected {
	e := expected{counts: maps.Clone(s.Counts), partial: s.Partial || c.Partial(), lists: s.Lists}
	switch {
	case len(c.Schemas)+len(c.Tables) > 0:
		e.counts = nil
	case c.SchemaOnly:
		delete(e.counts, "large objects")
	}
	return e
}

// compare says what is missing, or too much, in a restored database; ok when nothing is.
func (e expected) compare(got map[string]int64) (problem, bool) {
	want, both := e.counts, map[string]int64{}
	for kind := range want {
		both[kind] = 0
	}
	for kind := range got {
		if !e.partial {
			both[kind] = 0
		}
	}
	for _, kind := range sortedKeys(both) {
		if want[kind] != got[kind] {
			return problem{
				what:  fmt.Sprintf("the backup held %d %s and the new database has %d", want[kind], kind, got[kind]),
				kinds: []error{source.ErrIncomplete},
			}, false
		}
	}
	return problem{}, true
}
