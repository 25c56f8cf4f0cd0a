package postgres

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// world makes the SQL of a random database. The same seed makes the same.
type world struct {
	*rand.Rand
	b       strings.Builder
	n       int
	roles   []string // quoted
	schemas []string
	types   []valueType
	tables  []randomTable
}

// valueType is a type of SQL and expressions of g, the number of the row, that have values of it.
type valueType struct {
	name   string
	values []string
}

type randomTable struct {
	name    string // quoted, with schema
	columns []string
	rows    bool // has a column id with unique values
	kept    bool // is neither partitioned nor unlogged: may have foreign keys
}

var builtinTypes = []valueType{
	{"int", []string{"g", "-g", "2147483647"}}, {"bigint", []string{"g * 3000000000", "-9223372036854775808"}},
	{"numeric", []string{"g / 7.0", "'NaN'", "1e100::numeric"}}, {"numeric(12,3)", []string{"g / 3.0"}}, {"float8", []string{"sqrt(g)", "'NaN'", "'-Infinity'", "1e-300"}}, {"real", []string{"g * 0.1"}},
	{"text", []string{"'row ' || g", "''", `'\N'`, `'\.'`, `E'tab\there\nand \\ back'`, "'Ü' || chr(128512)", "repeat('long ' || g, 3000)", "'COMMIT;'", "E'\\nCOMMIT;\\n'"}},
	{"varchar(20)", []string{"left('v' || g, 20)", "'  '"}}, {"char(5)", []string{"'c'"}}, {"boolean", []string{"g % 2 = 0"}},
	{"bytea", []string{`sha512(g::text::bytea)`, `'\x'`, `'\x00ff5c2e0a'`, "decode(repeat('00', 100000), 'hex')"}}, {"uuid", []string{"md5(g::text)::uuid"}},
	{"date", []string{"date '2024-02-29' + g", "'infinity'", "'0044-03-15 BC'"}}, {"timestamptz", []string{"timestamptz '2024-03-31 01:59:59.999999+00' + g * interval '1 hour'", "'-infinity'"}},
	{"time", []string{"'24:00:00'"}}, {"interval", []string{"g * interval '1 mon -2 days 3.5 sec'"}},
	{"jsonb", []string{`jsonb_build_object('g', g, 'x y', ARRAY['"', '\', null])`, "'null'", "'[]'"}}, {"json", []string{`'{"b": 1,  "a": 2, "b": 3}'`}},
	{"int[]", []string{"ARRAY[g, NULL, 3]", "'{}'", "'{{1,2},{3,4}}'", "'[5:6]={1,2}'"}}, {"text[]", []string{`ARRAY['a,b', '{', '"', NULL, 'NULL', '']`}},
	{"inet", []string{"'10.0.0.1/8'", "'::1'"}}, {"int4range", []string{"int4range(g, g + 5)", "'empty'"}}, {"tstzrange", []string{"tstzrange(NULL, '2024-01-01+00', '[]')"}},
	{"point", []string{"point(g, -g)"}}, {"bit varying", []string{"B'1011'"}}, {"tsvector", []string{"to_tsvector('simple', 'a fat cat ' || g)"}}, {"xml", []string{"'<a>&lt;</a>'"}}, {"money", []string{"g::money"}},
}

// oddParts are put into names.
var oddParts = []string{"x", "My Table", `qu"ote`, "semi;colon", "ümläut", "数据", "dot.ted", "-h", `back\slash`, "it's", "select", "UPPER", "$$", "%s", "a\tb", "COMMIT;", `\! id`}

// ident makes a new quoted name.
func (w *world) ident() string {
	w.n++
	return ident(fmt.Sprintf("%s %d", oddParts[w.IntN(len(oddParts))], w.n))
}

func (w *world) schema() string { return w.schemas[w.IntN(len(w.schemas))] }

// role has rights, owner has things. They differ: rights of an owner on its own are written in two ways that mean the same.
func (w *world) role() string  { return w.roles[0] }
func (w *world) owner() string { return w.roles[1+w.IntN(len(w.roles)-1)] }

func (w *world) sql(format string, args ...any) { fmt.Fprintf(&w.b, format+";\n", args...) }

func (w *world) maybe(percent int) bool { return w.IntN(100) < percent }

// text makes a literal of anything.
func (w *world) text() string {
	return literal(strings.Repeat(oddParts[w.IntN(len(oddParts))]+" \n", 1+w.IntN(3)))
}

// randomDatabase makes the SQL of a database with that quoted name. The roles exist.
func randomDatabase(seed uint64, database string, roles []string) string {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 7)), roles: roles, schemas: []string{"public"}, types: builtinTypes}
	w.sql("SET check_function_bodies = off")
	for range w.IntN(3) {
		name := w.ident()
		w.sql("CREATE SCHEMA %s AUTHORIZATION %s", name, w.owner())
		w.schemas = append(w.schemas, name)
	}
	w.sql("GRANT ALL ON SCHEMA public TO PUBLIC")
	for range 1 + w.IntN(3) {
		w.ownType()
	}
	for range 2 + w.IntN(5) {
		w.table()
	}
	for range 1 + w.IntN(3) {
		w.partitioned()
	}
	for range 4 + w.IntN(12) {
		things := []func(){w.view, w.function, w.trigger, w.comment, w.grant, w.policy, w.index, w.foreignKey, w.sequence, w.defaults, w.others}
		things[w.IntN(len(things))]()
	}
	for i := range 1 + w.IntN(6) {
		w.largeObject(1000 + i)
	}
	w.settings(database)
	return w.b.String()
}

func (w *world) ownType() {
	name := w.schema() + "." + w.ident()
	switch w.IntN(4) {
	case 0:
		w.sql("CREATE TYPE %s AS ENUM ('a', 'it''s', 'ü;', '')", name)
		w.types = append(w.types, valueType{name, []string{"'it''s'", "''"}})
	case 1:
		w.sql("CREATE DOMAIN %s AS text DEFAULT 'd' CONSTRAINT %s CHECK (VALUE <> 'bad')", name, w.ident())
		w.types = append(w.types, valueType{name, []string{"'dom ' || g"}})
	case 2:
		w.sql("CREATE TYPE %s AS (%s int, %s text[])", name, w.ident(), w.ident())
		w.types = append(w.types, valueType{name, []string{"ROW(g, ARRAY['x,(', NULL])::" + name}})
	case 3:
		w.sql("CREATE TYPE %s AS RANGE (subtype = float8)", name)
		w.types = append(w.types, valueType{name, []string{"'[1.5,2)'"}})
	}
	if w.maybe(50) {
		w.sql("COMMENT ON TYPE %s IS %s", name, w.text())
	}
}

// columns makes the text of some columns, their names, and values for them.
func (w *world) columns() (defs, names, values []string) {
	for range w.IntN(7) {
		t, name := w.types[w.IntN(len(w.types))], w.ident()
		def := name + " " + t.name
		if w.maybe(15) {
			def += " DEFAULT NULL"
		}
		defs, names = append(defs, def), append(names, name)
		value := t.values[w.IntN(len(t.values))]
		values = append(values, fmt.Sprintf("CASE WHEN g %% %d = 0 THEN NULL ELSE (%s) END::%s", 2+w.IntN(9), value, t.name))
	}
	return defs, names, values
}

func (w *world) table() {
	name := w.schema() + "." + w.ident()
	defs, names, values := w.columns()
	id := []string{"id int PRIMARY KEY", "id bigint GENERATED BY DEFAULT AS IDENTITY (START 5 INCREMENT 3) UNIQUE", "id serial UNIQUE NOT NULL"}[w.IntN(3)]
	defs = append(defs, id)
	if w.maybe(40) {
		defs = append(defs, w.ident()+" bigint GENERATED ALWAYS AS (id * 2) STORED")
	}
	if w.maybe(40) {
		defs = append(defs, "CONSTRAINT "+w.ident()+" CHECK (id > -1)")
	}
	w.Shuffle(len(defs), func(i, j int) { defs[i], defs[j] = defs[j], defs[i] })
	kind := "TABLE"
	if w.maybe(10) {
		kind = "UNLOGGED TABLE"
	}
	w.sql("CREATE %s %s (%s)", kind, name, strings.Join(defs, ", "))
	if rows := []int{0, 1, 30, 300}[w.IntN(4)]; rows > 0 {
		w.sql("INSERT INTO %s (%s) SELECT %s FROM generate_series(1, %d) g", name, strings.Join(append(names, "id"), ", "), strings.Join(append(values, "g"), ", "), rows)
	}
	if w.maybe(30) {
		w.sql("ALTER TABLE %s ADD dropped int; ALTER TABLE %s DROP dropped", name, name)
	}
	w.tables = append(w.tables, randomTable{name, names, true, kind == "TABLE"})
}

func (w *world) partitioned() {
	name := w.schema() + "." + w.ident()
	defs, names, values := w.columns()
	defs = append(defs, "at int NOT NULL")
	how := w.IntN(3)
	w.sql("CREATE TABLE %s (%s) PARTITION BY %s (at)", name, strings.Join(defs, ", "), []string{"RANGE", "LIST", "HASH"}[how])
	for _, bounds := range [][]string{
		{"FOR VALUES FROM (MINVALUE) TO (50)", "FOR VALUES FROM (50) TO (100)", "DEFAULT"}, {"FOR VALUES IN (1, 2, 3)", "DEFAULT"},
		{"FOR VALUES WITH (MODULUS 2, REMAINDER 0)", "FOR VALUES WITH (MODULUS 2, REMAINDER 1)"},
	}[how] {
		w.sql("CREATE TABLE %s.%s PARTITION OF %s %s", w.schema(), w.ident(), name, bounds)
	}
	w.sql("INSERT INTO %s (%s) SELECT %s FROM generate_series(1, 150) g", name, strings.Join(append(names, "at"), ", "), strings.Join(append(values, "g"), ", "))
	if w.maybe(50) {
		w.sql("CREATE INDEX ON %s (at)", name)
	}
	w.tables = append(w.tables, randomTable{name, names, false, false})
}

func (w *world) any() randomTable { return w.tables[w.IntN(len(w.tables))] }

func (w *world) view() {
	kind, name := []string{"VIEW", "MATERIALIZED VIEW"}[w.IntN(2)], w.schema()+"."+w.ident()
	w.sql("CREATE %s %s AS SELECT count(*) AS %s, %s AS t FROM %s", kind, name, w.ident(), w.text(), w.any().name)
	if w.maybe(50) {
		w.sql("GRANT SELECT ON %s TO %s", name, w.role())
	}
}

func (w *world) function() {
	name := w.schema() + "." + w.ident()
	switch w.IntN(3) {
	case 0:
		w.sql("CREATE FUNCTION %s(a int, VARIADIC %s text[] DEFAULT '{}') RETURNS TABLE (x int, y text) LANGUAGE sql STABLE AS 'SELECT 1, %s'", name, w.ident(), "''q''")
	case 1:
		w.sql("CREATE PROCEDURE %s(INOUT a text) LANGUAGE plpgsql SECURITY DEFINER SET search_path TO public AS $body$ BEGIN a := 'COMMIT;'; END $body$", name)
	case 2:
		w.sql("CREATE AGGREGATE %s(int) (SFUNC = int4pl, STYPE = int, INITCOND = '0')", name)
	}
}

func (w *world) trigger() {
	f := w.schema() + "." + w.ident()
	w.sql("CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'", f)
	t := w.any()
	name := w.ident()
	w.sql("CREATE TRIGGER %s AFTER INSERT OR DELETE ON %s FOR EACH ROW EXECUTE FUNCTION %s(%s)", name, t.name, f, w.text())
	if t.rows && w.maybe(30) {
		w.sql("ALTER TABLE %s DISABLE TRIGGER %s", t.name, name)
	}
}

func (w *world) comment() {
	t := w.any()
	w.sql("COMMENT ON TABLE %s IS %s", t.name, w.text())
	if len(t.columns) > 0 {
		w.sql("COMMENT ON COLUMN %s.%s IS %s", t.name, t.columns[0], w.text())
	}
}

func (w *world) grant() {
	t := w.any()
	w.sql("GRANT SELECT, UPDATE ON %s TO %s WITH GRANT OPTION", t.name, w.role())
	if len(t.columns) > 0 {
		w.sql("GRANT INSERT (%s) ON %s TO PUBLIC", t.columns[0], t.name)
	}
	w.sql("ALTER TABLE %s OWNER TO %s", w.any().name, w.owner())
}

func (w *world) policy() {
	t := w.any()
	w.sql("ALTER TABLE %s ENABLE ROW LEVEL SECURITY", t.name)
	w.sql("CREATE POLICY %s ON %s AS RESTRICTIVE FOR UPDATE TO %s USING (true) WITH CHECK (1 < 2)", w.ident(), t.name, w.role())
}

func (w *world) index() {
	t := w.any()
	if !t.rows {
		w.sql("CREATE STATISTICS %s.%s (ndistinct) ON at, (at %% 3) FROM %s", w.schema(), w.ident(), t.name)
		return
	}
	w.sql("CREATE INDEX %s ON %s ((id %% 7) DESC NULLS LAST) WHERE id > 3", w.ident(), t.name)
	if w.maybe(30) {
		w.sql("ALTER TABLE %s REPLICA IDENTITY FULL", t.name)
	}
}

func (w *world) foreignKey() {
	a, b := w.any(), w.any()
	if a.kept && b.kept {
		w.sql("ALTER TABLE %s ADD CONSTRAINT %s FOREIGN KEY (id) REFERENCES %s (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED NOT VALID", a.name, w.ident(), b.name)
	}
}

func (w *world) sequence() {
	name := w.schema() + "." + w.ident()
	w.sql("CREATE SEQUENCE %s AS smallint MINVALUE -5 START 3 INCREMENT -1 MAXVALUE 100 CYCLE; SELECT setval(%s, -2, %t)", name, literal(name), w.maybe(50))
}

func (w *world) defaults() {
	w.sql("ALTER DEFAULT PRIVILEGES FOR ROLE %s GRANT SELECT ON TABLES TO %s", w.owner(), w.role())
	w.sql("ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA %s GRANT EXECUTE ON FUNCTIONS TO PUBLIC", w.owner(), w.schema())
}

func (w *world) others() {
	switch w.IntN(4) {
	case 0:
		w.sql("CREATE PUBLICATION %s FOR ALL TABLES", w.ident())
	case 1:
		w.sql("CREATE COLLATION %s.%s (provider = icu, locale = 'de-u-co-phonebk')", w.schema(), w.ident())
	case 2:
		w.sql("CREATE TEXT SEARCH CONFIGURATION %s.%s (COPY = simple)", w.schema(), w.ident())
	case 3:
		w.sql("CREATE RULE %s AS ON DELETE TO %s DO ALSO NOTIFY %s", w.ident(), w.any().name, w.ident())
	}
}

func (w *world) largeObject(oid int) {
	w.sql("SELECT lo_from_bytea(%d, %s)", oid, []string{"''", "sha512('x')", "decode(repeat('00ff5c', 50000), 'hex')", `'\x0a2e0a'`}[w.IntN(4)])
	w.sql("ALTER LARGE OBJECT %d OWNER TO %s", oid, w.owner())
	if w.maybe(50) {
		w.sql("GRANT SELECT ON LARGE OBJECT %d TO %s; COMMENT ON LARGE OBJECT %d IS %s", oid, w.role(), oid, w.text())
	}
}

func (w *world) settings(database string) {
	if w.maybe(60) {
		w.sql("ALTER DATABASE %s SET search_path TO %s, public; ALTER DATABASE %s SET my.own TO %s", database, w.schema(), database, w.text())
	}
	if w.maybe(60) {
		w.sql("ALTER ROLE %s IN DATABASE %s SET work_mem TO '5MB'", w.role(), database)
	}
	if w.maybe(60) {
		w.sql("REVOKE ALL ON DATABASE %s FROM PUBLIC; GRANT CREATE ON DATABASE %s TO %s WITH GRANT OPTION", database, database, w.role())
	}
	w.sql("ALTER DATABASE %s OWNER TO %s; COMMENT ON DATABASE %s IS %s", database, w.owner(), database, w.text())
}
