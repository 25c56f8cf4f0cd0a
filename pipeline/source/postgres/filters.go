package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fencepost/fencepost/pipeline/source"
)

// filters are the parsed options of a dump.
type filters struct {
	schemas, tables, exSchemas, exTables, exRows []pattern
	blobs                                        bool // large objects are dumped
	subscriptions                                bool // they are too
	options                                      source.DumpOptions
}

// parseFilters checks options as far as that needs no server.
func parseFilters(o source.DumpOptions) (filters, error) {
	f := filters{options: o, blobs: !o.NoLargeObjects && !o.SchemaOnly,
		subscriptions: !o.NoSubscriptions && len(o.Schemas)+len(o.Tables) == 0}
	for _, list := range []struct {
		texts []string
		into  *[]pattern
		parse func(string) (pattern, error)
	}{
		{o.Schemas, &f.schemas, parseSchema}, {o.Tables, &f.tables, parseTable}, {o.ExcludeSchemas, &f.exSchemas, parseSchema},
		{o.ExcludeTables, &f.exTables, parseTable}, {o.ExcludeRows, &f.exRows, parseTable},
	} {
		for _, text := range list.texts {
			p, err := list.parse(text)
			if err != nil {
				return f, err
			}
			*list.into = append(*list.into, p)
		}
	}
	switch {
	case o.Format != "" && o.Format != source.FormatCustom && o.Format != source.FormatPlain:
		return f, fmt.Errorf("format %q is not %s or %s", o.Format, source.FormatCustom, source.FormatPlain)
	case len(o.Tables) > 0 && len(o.Schemas)+len(o.ExcludeSchemas) > 0:
		return f, errors.New("chosen tables and filters of schemas exclude each other: write the schema before the table, with a dot")
	case o.RolePasswords && o.NoGlobals:
		return f, errors.New("role passwords are part of the globals, which shall be left out")
	case o.Jobs > 1 && o.Format == source.FormatPlain:
		return f, errors.New("a plain dump is one script: jobs are for archives")
	}
	return f, checkJobs(o.Jobs)
}

var _ source.Checker = (*Source)(nil)

// CheckOptions implements source.Checker.
func (s *Source) CheckOptions(o source.DumpOptions) error {
	_, err := parseFilters(s.asConfigured(o))
	return err
}

// partial tells whether something of the database is left out.
func (f filters) partial() bool {
	return f.options.SchemaOnly || f.options.NoLargeObjects || len(f.schemas)+len(f.tables)+len(f.exSchemas)+len(f.exTables) > 0
}

func (f filters) format() string {
	if f.options.Format == source.FormatPlain {
		return source.FormatPlain
	}
	return source.FormatCustom
}

// args are pg_dump's arguments for the filters.
func (f filters) args() []string {
	args := []string{"--strict-names"}
	for _, list := range []struct {
		arg      string
		patterns []pattern
	}{
		{"--schema=", f.schemas}, {"--table=", f.tables}, {"--exclude-schema=", f.exSchemas},
		{"--exclude-table=", f.exTables}, {"--exclude-table-data=", f.exRows},
	} {
		for _, p := range list.patterns {
			args = append(args, list.arg+p.glob())
		}
	}
	if f.options.SchemaOnly {
		args = append(args, "--schema-only")
	}
	if !f.subscriptions {
		args = append(args, "--no-subscriptions") // pg_dump would warn of those that are not asked for
	}
	if f.blobs {
		return append(args, "-b") // pg_dump leaves large objects out as soon as something is chosen
	}
	return append(args, "-B")
}

// selected says in SQL whether a relation (of nspname and relname) is dumped; see sqlArgs.
const selected = `CASE WHEN cardinality($2::text[]) > 0 THEN EXISTS (SELECT FROM unnest($2::text[], $3::text[]) AS f (s, r) WHERE nspname ~ s AND relname ~ r)
		ELSE cardinality($1::text[]) = 0 OR EXISTS (SELECT FROM unnest($1::text[]) AS s WHERE nspname ~ s) END
	AND NOT EXISTS (SELECT FROM unnest($4::text[]) AS s WHERE nspname ~ s)
	AND NOT EXISTS (SELECT FROM unnest($5::text[], $6::text[]) AS f (s, r) WHERE nspname ~ s AND relname ~ r)`

// sqlArgs are the first six parameters of a query with selected in it.
func (f filters) sqlArgs() []any {
	return []any{nameRegexes(f.schemas), schemaRegexes(f.tables), nameRegexes(f.tables),
		nameRegexes(f.exSchemas), schemaRegexes(f.exTables), nameRegexes(f.exTables)}
}

func nameRegexes(list []pattern) []string {
	out := []string{}
	for _, p := range list {
		out = append(out, p.nameRegex)
	}
	return out
}

func schemaRegexes(list []pattern) []string {
	out := []string{}
	for _, p := range list {
		out = append(out, p.schemaRegex)
	}
	return out
}

const (
	findSchema = `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname ~ $1 AND nspname !~ '^pg_' AND nspname <> 'information_schema')`
	findTable  = `SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname ~ $1 AND relname ~ $2
		AND relkind IN ('r', 'p', 'v', 'm', 'S', 'f') AND nspname !~ '^pg_' AND nspname <> 'information_schema')`
)

// check finds filters that match nothing: a name with a typo must not be a backup without the table.
func (f filters) check(ctx context.Context, conn *session) error {
	for _, list := range [][]pattern{f.schemas, f.exSchemas, f.tables, f.exTables, f.exRows} {
		for _, p := range list {
			query, args := findSchema, []any{p.nameRegex}
			if p.schemaGlob != "" {
				query, args = findTable, []any{p.schemaRegex, p.nameRegex}
			}
			var found bool
			if err := conn.QueryRow(ctx, query, args...).Scan(&found); err != nil {
				return err
			}
			if !found {
				return &unmatched{p.text}
			}
		}
	}
	return nil
}

// unmatched is a filter that matches nothing.
type unmatched struct{ text string }

func (u *unmatched) Error() string {
	return fmt.Sprintf("filter %s matches nothing in the database", u.text)
}

// partialCounts counts what can be counted of a dump of chosen parts: tables, views and large objects.
const partialCounts = `SELECT CASE relkind WHEN 'r' THEN 'tables' WHEN 'p' THEN 'partitioned tables' WHEN 'v' THEN 'views' ELSE 'materialized views' END, count(*)
	FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
	WHERE relkind IN ('r', 'p', 'v', 'm') AND nspname !~ '^pg_' AND nspname <> 'information_schema' AND NOT (nspname = 'fencepost' AND relname = 'attempt')
	AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e') AND ` + selected + ` GROUP BY 1
	UNION ALL SELECT 'large objects', count(*) FROM pg_largeobject_metadata WHERE $7`

// schemasQuery lists the schemas of what is dumped.
const schemasQuery = `SELECT DISTINCT nspname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
	WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' AND NOT (nspname = 'fencepost' AND relname = 'attempt') AND ` + selected + ` ORDER BY 1`

// bareSchemas are the schemas that a restore has to make itself: an archive of chosen tables does not hold them, and
// pg_restore leaves them out when something is chosen.
func bareSchemas(o source.RestoreOptions) []string {
	if len(o.Schemas) > 0 {
		return o.Schemas
	}
	if len(o.Tables) > 0 || len(o.Info.Options.Tables) > 0 {
		return o.Info.Schemas
	}
	return nil
}

// makeSchemas is the SQL that makes them.
func makeSchemas(names []string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString("CREATE SCHEMA IF NOT EXISTS " + ident(name) + ";\n")
	}
	return b.String()
}

func (f filters) count(ctx context.Context, conn *session) (map[string]int64, error) {
	if !f.partial() {
		return countObjects(ctx, conn, countQuery)
	}
	counts, err := countObjects(ctx, conn, partialCounts, append(f.sqlArgs(), f.blobs)...)
	if err != nil {
		return nil, err
	}
	for _, kind := range strings.Split("tables,partitioned tables,views,materialized views,large objects", ",") {
		counts[kind] += 0 // none is a number too
	}
	return counts, nil
}
