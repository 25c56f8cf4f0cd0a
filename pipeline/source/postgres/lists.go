package postgres

import (
	"context"
	"fmt"

	"github.com/fencepost/fencepost/pipeline/source"
)

// listQuery gives, for each kind of countQuery that has names of its own, a digest of the sorted names. Two databases with the same
// digests have objects of the same names. It looks at the same objects as countQuery.
const listQuery = `
WITH n AS (SELECT oid, nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' AND ` + notOurs + `),
member AS (SELECT classid, objid FROM pg_depend WHERE deptype = 'e'),
rel AS (SELECT c.oid, relkind, format('%I.%I', nspname, relname) AS name FROM pg_class c JOIN n ON n.oid = relnamespace
	WHERE NOT EXISTS (SELECT FROM member WHERE classid = 'pg_class'::regclass AND objid = c.oid) AND NOT (nspname = 'fencepost' AND relname = 'attempt'))
SELECT kind, md5(string_agg(name, E'\n' ORDER BY name COLLATE "C")) FROM (
	SELECT CASE relkind WHEN 'r' THEN 'tables' WHEN 'p' THEN 'partitioned tables' WHEN 'v' THEN 'views' WHEN 'm' THEN 'materialized views'
		WHEN 'S' THEN 'sequences' WHEN 'f' THEN 'foreign tables' WHEN 'c' THEN 'composite types' END AS kind, name
	FROM rel WHERE relkind IN ('r', 'p', 'v', 'm', 'S', 'f', 'c')
	UNION ALL SELECT 'columns', format('%s.%I %s', name, attname, format_type(atttypid, atttypmod)) FROM pg_attribute JOIN rel ON rel.oid = attrelid
		WHERE relkind IN ('r', 'p', 'v', 'm', 'f', 'c') AND attnum > 0 AND NOT attisdropped
	UNION ALL SELECT 'indexes', format('%s %I', name, (SELECT relname FROM pg_class WHERE oid = indexrelid)) FROM pg_index JOIN rel ON rel.oid = indrelid WHERE indisvalid
	UNION ALL SELECT 'constraints', format('%s %I %s', name, conname, contype) FROM pg_constraint JOIN rel ON rel.oid = conrelid
		WHERE contype IN ('c', 'f', 'p', 'u', 'x') AND conparentid = 0
	UNION ALL SELECT 'triggers', format('%s %I', name, tgname) FROM pg_trigger t JOIN rel ON rel.oid = tgrelid
		WHERE NOT tgisinternal AND coalesce(to_jsonb(t) ->> 'tgparentid', '0') = '0'
	UNION ALL SELECT 'policies', format('%s %I', name, polname) FROM pg_policy JOIN rel ON rel.oid = polrelid
	UNION ALL SELECT 'routines', format('%I.%I(%s)', nspname, proname, pg_get_function_identity_arguments(p.oid)) FROM pg_proc p JOIN n ON n.oid = pronamespace
		WHERE NOT EXISTS (SELECT FROM member WHERE classid = 'pg_proc'::regclass AND objid = p.oid)
		AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'i')
	UNION ALL SELECT 'enums and domains', format('%I.%I', nspname, typname) FROM pg_type t JOIN n ON n.oid = typnamespace
		WHERE typtype IN ('e', 'd') AND NOT EXISTS (SELECT FROM member WHERE classid = 'pg_type'::regclass AND objid = t.oid)
	UNION ALL SELECT 'schemas', nspname FROM n WHERE nspname <> 'public'
		AND NOT EXISTS (SELECT FROM member WHERE classid = 'pg_namespace'::regclass AND objid = n.oid)
	UNION ALL SELECT 'extensions', extname FROM pg_extension
	UNION ALL SELECT 'large objects', oid::text FROM pg_largeobject_metadata
) AS one GROUP BY kind`

// readLists are the digests of the database in which conn is.
func readLists(ctx context.Context, conn *session) (map[string]string, error) {
	rows, err := conn.Query(ctx, listQuery)
	if err != nil {
		return nil, err
	}
	lists := map[string]string{}
	return lists, eachPair(rows, func(kind, digest string) { lists[kind] = digest })
}

// compareLists says which kind of objects has other names in a restored database; ok when none has.
func compareLists(want, got map[string]string) (problem, bool) {
	for _, kind := range sortedKeys(want) {
		if want[kind] != got[kind] {
			return problem{what: fmt.Sprintf("the %s of the new database are not those that the backup held", kind), kinds: []error{source.ErrIncomplete}}, false
		}
	}
	return problem{}, true
}
