package postgres

import (
	"context"
	"fmt"
)

// lockTable is a server's room for locks that one transaction can count on.
type lockTable struct {
	perTransaction, sessions int64 // max_locks_per_transaction; max_connections + max_prepared_transactions
	used                     int64 // by everybody, now
}

func (l lockTable) capacity() int64 { return l.perTransaction * l.sessions }

func readLockTable(ctx context.Context, conn *session) (lockTable, error) {
	var l lockTable
	err := conn.QueryRow(ctx, `SELECT current_setting('max_locks_per_transaction')::bigint,
		current_setting('max_connections')::bigint + current_setting('max_prepared_transactions')::bigint,
		(SELECT count(DISTINCT (locktype, database, relation, page, tuple, virtualxid, transactionid::text, classid, objid, objsubid)) FROM pg_locks WHERE NOT fastpath)`).Scan(&l.perTransaction, &l.sessions, &l.used)
	return l, err
}

// lacks says what is wrong when a transaction needs so many locks; ok when they fit.
func (l lockTable) lacks(needed int64) (problem, bool) {
	if needed+l.used <= l.capacity() {
		return problem{}, true
	}
	enough := (needed + l.used + l.sessions - 1) / l.sessions
	return problem{
		what: fmt.Sprintf("its transaction needs about %d locks; the server has room for %d (max_locks_per_transaction %d × %d sessions), of which %d are in use",
			needed, l.capacity(), l.perTransaction, l.sessions, l.used),
		hint: fmt.Sprintf("set max_locks_per_transaction to %d or more and restart the server", enough),
	}, false
}

// dumpLocks is how many locks a dump of so many objects holds at its end: one on each table and sequence that it reads.
func dumpLocks(counts map[string]int64) int64 {
	return counts["tables"] + counts["partitioned tables"] + counts["sequences"]
}

// buildLocks bounds how many locks a transaction holds that makes, or drops, so many objects: a table comes with the
// place for its large values, an index of that, and two types.
func buildLocks(counts map[string]int64) int64 {
	n := 4 * (counts["tables"] + counts["materialized views"])
	for _, kind := range []string{
		"partitioned tables", "views", "sequences", "foreign tables", "composite types", "indexes", "constraints", "triggers", "policies",
		"routines", "enums and domains", "schemas", "extensions", "large objects",
	} {
		n += counts[kind]
	}
	return n
}
