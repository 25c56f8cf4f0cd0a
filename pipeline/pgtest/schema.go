package pgtest

// schemaQuery lists what a dump carries besides rows: one line of text for each object. Members of extensions belong to
// their extension, and the schema "public" to the template.
const schemaQuery = `
WITH n AS (SELECT oid, nspname, nspowner, nspacl FROM pg_namespace WHERE ` + ofUser + `)
SELECT concat_ws(' ', 'schema', nspname, pg_get_userbyid(nspowner), (SELECT array_agg(x::text ORDER BY x::text) FROM unnest(nspacl) x)) FROM n
UNION ALL
SELECT concat_ws(' ', 'relation', relkind, relpersistence, nspname, relname, pg_get_userbyid(relowner), (SELECT array_agg(x::text ORDER BY x::text) FROM unnest(relacl) x), reloptions,
	relrowsecurity, pg_get_partkeydef(c.oid), pg_get_expr(relpartbound, c.oid), obj_description(c.oid, 'pg_class'))
FROM pg_class c JOIN n ON n.oid = relnamespace
UNION ALL
SELECT concat_ws(' ', 'column', nspname, relname, attname, format_type(atttypid, atttypmod), attnotnull, attidentity,
	attgenerated, attstorage, (SELECT array_agg(x::text ORDER BY x::text) FROM unnest(attacl) x), pg_get_expr(adbin, adrelid), col_description(c.oid, attnum))
FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid JOIN n ON n.oid = relnamespace
LEFT JOIN pg_attrdef d ON adrelid = attrelid AND adnum = attnum
WHERE attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'p', 'v', 'm', 'c', 'f')
UNION ALL
SELECT concat_ws(' ', 'index', pg_get_indexdef(indexrelid), indisclustered, indisreplident)
FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN n ON n.oid = relnamespace
UNION ALL
SELECT concat_ws(' ', 'constraint', nspname, conrelid::regclass::text, conname, pg_get_constraintdef(c.oid), convalidated)
FROM pg_constraint c JOIN n ON n.oid = connamespace
UNION ALL
SELECT concat_ws(' ', 'view', nspname, relname, pg_get_viewdef(c.oid))
FROM pg_class c JOIN n ON n.oid = relnamespace WHERE relkind IN ('v', 'm')
UNION ALL
SELECT concat_ws(' ', 'trigger', pg_get_triggerdef(t.oid), tgenabled)
FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid JOIN n ON n.oid = relnamespace WHERE NOT tgisinternal
UNION ALL
SELECT concat_ws(' ', 'policy', nspname, relname, polname, polcmd, polpermissive, pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid))
FROM pg_policy JOIN pg_class c ON c.oid = polrelid JOIN n ON n.oid = relnamespace
UNION ALL
SELECT concat_ws(' ', 'routine', CASE WHEN prokind IN ('f', 'p') THEN pg_get_functiondef(p.oid) ELSE p.oid::regprocedure::text END,
	pg_get_userbyid(proowner), (SELECT array_agg(x::text ORDER BY x::text) FROM unnest(proacl) x))
FROM pg_proc p JOIN n ON n.oid = pronamespace
WHERE NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e')
UNION ALL
SELECT concat_ws(' ', 'type', nspname, typname, typtype, format_type(typbasetype, typtypmod), typnotnull, typdefault,
	(SELECT string_agg(enumlabel, ',' ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = t.oid))
FROM pg_type t JOIN n ON n.oid = typnamespace WHERE typtype IN ('e', 'd', 'r')
UNION ALL
SELECT concat_ws(' ', 'sequence', schemaname, sequencename, data_type, start_value, min_value, max_value, increment_by, cycle, cache_size)
FROM pg_sequences
UNION ALL
SELECT concat_ws(' ', 'extension', extname, extversion) FROM pg_extension
UNION ALL
SELECT concat_ws(' ', 'large object', oid, pg_get_userbyid(lomowner), (SELECT array_agg(x::text ORDER BY x::text) FROM unnest(lomacl) x)) FROM pg_largeobject_metadata
UNION ALL
SELECT concat_ws(' ', 'default rights', pg_get_userbyid(defaclrole), defaclobjtype, (SELECT array_agg(x::text ORDER BY x::text) FROM unnest(defaclacl) x)) FROM pg_default_acl
UNION ALL
SELECT concat_ws(' ', 'database', pg_get_userbyid(datdba), pg_encoding_to_char(encoding), datcollate, datctype, (SELECT array_agg(x::text ORDER BY x::text) FROM unnest(datacl) x), datconnlimit,
	shobj_description(d.oid, 'pg_database'), (SELECT array_agg(concat(setrole::regrole::text, ' ', kv) ORDER BY setrole, kv)
	FROM pg_db_role_setting, unnest(setconfig) kv WHERE setdatabase = d.oid))
FROM pg_database d WHERE datname = current_database()
`
