package pgtest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
)

// Table is the fingerprint of one table's rows.
type Table struct {
	Rows int64
	Sum  string // checksum over all rows, independent of their order
}

// Print is what two databases have in common when one is a true copy of the other. Compare with Diff.
type Print struct {
	Tables    map[string]Table  // "schema.table" → its rows; tables, partitions and materialized views
	Objects   map[uint32]string // large object → checksum of its bytes
	Sequences map[string]string // "schema.sequence" → last value and whether it was called
	Schema    []string          // every schema object with its definition, owner and rights, sorted
}

// Fingerprint reads the print of a database, in one snapshot. It reads all rows, inside the server.
func Fingerprint(ctx context.Context, dsn string) (Print, error) {
	f := Print{Tables: map[string]Table{}, Objects: map[uint32]string{}, Sequences: map[string]string{}}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return f, fmt.Errorf("connect to take a fingerprint: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return f, fmt.Errorf("begin to take a fingerprint: %w", err)
	}
	if _, err := tx.Exec(ctx, fixedOutput); err != nil {
		return f, fmt.Errorf("fix the output formats: %w", err)
	}
	for _, part := range []func(context.Context, pgx.Tx) error{f.tables, f.objects, f.sequences, f.schema} {
		if err := part(ctx, tx); err != nil {
			return f, fmt.Errorf("take a fingerprint: %w", err)
		}
	}
	return f, nil
}

// fixedOutput makes rows look the same as text whatever the database's own settings are.
const fixedOutput = `SELECT set_config('search_path', 'pg_catalog', true), set_config('bytea_output', 'hex', true),
	set_config('DateStyle', 'ISO, YMD', true), set_config('TimeZone', 'UTC', true), set_config('extra_float_digits', '3', true),
	set_config('IntervalStyle', 'postgres', true), set_config('statement_timeout', '0', true)`

const ofUser = `nspname !~ '^pg_' AND nspname <> 'information_schema'`

// relation names a relation in two ways: quoted for SQL, plain for people.
type relation struct {
	quoted, plain string
}

func relations(ctx context.Context, tx pgx.Tx, kinds string) ([]relation, error) {
	rows, err := tx.Query(ctx, `SELECT format('%I.%I', nspname, relname), nspname || '.' || relname
		FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
		WHERE relkind = ANY ($1::text::"char"[]) AND `+ofUser, kinds)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (relation, error) {
		var r relation
		return r, row.Scan(&r.quoted, &r.plain)
	})
}

// tables sums two 64-bit hashes of each row's text: the sum does not depend on the order.
func (f Print) tables(ctx context.Context, tx pgx.Tx) error {
	found, err := relations(ctx, tx, "{r,m}")
	if err != nil {
		return err
	}
	for _, r := range found {
		var t Table
		err := tx.QueryRow(ctx, `SELECT count(*), concat(sum(hashtextextended(fp_row::text, 1)), '/', sum(hashtextextended(fp_row::text, 2)))
			FROM ONLY `+r.quoted+` AS fp_row`).Scan(&t.Rows, &t.Sum)
		if err != nil {
			return fmt.Errorf("read table %s: %w", r.plain, err)
		}
		f.Tables[r.plain] = t
	}
	return nil
}

func (f Print) objects(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `SELECT oid, encode(sha256(lo_get(oid)), 'hex') FROM pg_largeobject_metadata`)
	if err != nil {
		return err
	}
	var oid uint32
	var sum string
	_, err = pgx.ForEachRow(rows, []any{&oid, &sum}, func() error {
		f.Objects[oid] = sum
		return nil
	})
	return err
}

func (f Print) sequences(ctx context.Context, tx pgx.Tx) error {
	found, err := relations(ctx, tx, "{S}")
	if err != nil {
		return err
	}
	for _, r := range found {
		var value string
		if err := tx.QueryRow(ctx, `SELECT concat(last_value, ' ', is_called) FROM `+r.quoted).Scan(&value); err != nil {
			return fmt.Errorf("read sequence %s: %w", r.plain, err)
		}
		f.Sequences[r.plain] = value
	}
	return nil
}

func (f *Print) schema(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, schemaQuery)
	if err != nil {
		return err
	}
	f.Schema, err = pgx.CollectRows(rows, pgx.RowTo[string])
	slices.Sort(f.Schema)
	return err
}

// Diff says in one sentence each where b differs from a; none means that they are the same.
func Diff(a, b Print) []string {
	out := diffMaps("table", a.Tables, b.Tables)
	out = append(out, diffMaps("large object", a.Objects, b.Objects)...)
	out = append(out, diffMaps("sequence", a.Sequences, b.Sequences)...)
	return append(out, diffMaps("schema object", set(a.Schema), set(b.Schema))...)
}

func set(list []string) map[string]bool {
	m := make(map[string]bool, len(list))
	for _, s := range list {
		m[s] = true
	}
	return m
}

func diffMaps[K interface{ ~string | ~uint32 }, V comparable](kind string, a, b map[K]V) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(a)) {
		switch other, ok := b[key]; {
		case !ok:
			out = append(out, fmt.Sprintf("%s %v is missing", kind, key))
		case other != a[key]:
			out = append(out, fmt.Sprintf("%s %v differs: %v, then %v", kind, key, a[key], other))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[key]; !ok {
			out = append(out, fmt.Sprintf("%s %v is new", kind, key))
		}
	}
	return out
}
