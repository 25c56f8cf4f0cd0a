package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fencepost/fencepost/pipeline/source"
)

// StandbyUse says whether dumps look for a standby.
type StandbyUse string

// What a dump does about standbys. Whichever server it comes to, a standby that lags too far is refused.
const (
	StandbyAny    StandbyUse = ""       // the first server of the DSN that answers
	StandbyPrefer StandbyUse = "prefer" // one of the DSN's servers that is a standby and keeps up; else the primary, which is told in the log
)

const defaultStandbyMaxAge = 5 * time.Minute

// standbyState is what a server says of its replication.
type standbyState struct {
	standby   bool          // it is in recovery
	age       time.Duration // of the last transaction that was replayed; below 0: none was
	caughtUp  bool          // all that was received is replayed
	receiving bool          // a receiver runs
	paused    bool          // replay was paused by a person
	cancels   bool          // replay may cancel a long dump: the primary does not hear of it, and replay waits only so long
	unlogged  int           // tables whose rows no standby has
}

// behind says how old the rows of a dump would be, and whether that is known. A primary that writes nothing makes nobody
// lag: who has received and replayed all there is is up to date.
func (s standbyState) behind() (age time.Duration, known bool) {
	switch {
	case !s.standby, s.receiving && s.caughtUp && !s.paused:
		return 0, true
	case s.age < 0:
		return 0, false
	}
	return s.age, true
}

// fits says why a dump of a standby would be too old; ok when it would not. Pure.
func (s standbyState) fits(limit time.Duration) (problem, bool) {
	age, known := s.behind()
	why := "it lags"
	switch {
	case s.paused:
		why = "its replay is paused"
	case !s.receiving:
		why = "it receives nothing from a primary"
	}
	switch {
	case !known:
		return problem{what: "the standby has replayed nothing yet", hint: "wait until it has, or name the primary", kinds: []error{source.ErrUnavailable}}, false
	case age > limit:
		return problem{what: fmt.Sprintf("the standby is %v behind, at most %v are allowed: %s", age.Round(time.Second), limit, why),
			hint: "see its log and pg_stat_wal_receiver, or name the primary", kinds: []error{source.ErrUnavailable}}, false
	}
	return problem{}, true
}

const standbyQuery = `SELECT pg_is_in_recovery(), coalesce(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()), -1)::float8,
	coalesce(pg_last_wal_receive_lsn() <= pg_last_wal_replay_lsn(), false), EXISTS (SELECT FROM pg_stat_wal_receiver WHERE pid IS NOT NULL),
	CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() ELSE false END,
	NOT current_setting('hot_standby_feedback')::boolean AND current_setting('max_standby_streaming_delay') <> '-1',
	(SELECT count(*)::int FROM pg_class WHERE relpersistence = 'u' AND relkind IN ('r', 'm'))`

func readStandby(ctx context.Context, conn *session) (s standbyState, err error) {
	var age float64
	err = conn.QueryRow(ctx, standbyQuery).Scan(&s.standby, &age, &s.caughtUp, &s.receiving, &s.paused, &s.cancels, &s.unlogged)
	s.age = time.Duration(age * float64(time.Second))
	return s, err
}

// connectForDump opens the session of a dump on the server that it is to be made of.
func (s *Source) connectForDump(ctx context.Context, a source.Attempt) (*session, standbyState, error) {
	if s.cfg.Standby == StandbyPrefer {
		if conn, state, ok := s.findStandby(ctx, a); ok {
			return conn, state, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, standbyState{}, s.wrap(ctx, err, "connect to database %q", s.Database())
		}
	}
	conn, state, err := s.connectFitting(ctx, a)
	if err != nil {
		return nil, state, err
	}
	return conn, state, nil
}

// findStandby looks for a standby that keeps up among the DSN's servers, in order.
func (s *Source) findStandby(ctx context.Context, a source.Attempt) (*session, standbyState, bool) {
	var reasons []string
	for _, at := range s.where.addresses() {
		conn, err := s.connectAt(ctx, a, at, s.Database())
		if err != nil {
			reasons = append(reasons, fmt.Sprintf("%s:%d: %v", at.host, at.port, s.wrap(ctx, err, "connect")))
			continue
		}
		state, err := readStandby(ctx, conn)
		p, fits := state.fits(s.cfg.StandbyMaxAge)
		if err == nil && state.standby && fits {
			return conn, state, true
		}
		conn.close()
		switch {
		case err != nil:
			p.what = s.wrap(ctx, err, "look at it").Error()
		case !state.standby:
			p.what = "it is no standby"
		}
		reasons = append(reasons, fmt.Sprintf("%s:%d: %s", at.host, at.port, p.what))
	}
	s.log.WarnContext(ctx, "no standby to dump, the primary is taken", "database", s.Database(), "servers", s.where.secrets.clean(strings.Join(reasons, "; ")))
	return nil, standbyState{}, false
}

// connectFitting takes the first server that answers and is no standby that lags.
func (s *Source) connectFitting(ctx context.Context, a source.Attempt) (*session, standbyState, error) {
	var first error
	for _, at := range s.where.addresses() {
		conn, err := s.connectAt(ctx, a, at, s.Database())
		var state standbyState
		if err == nil {
			state, err = readStandby(ctx, conn)
			if p, fits := state.fits(s.cfg.StandbyMaxAge); err == nil && !fits {
				err = s.errorf(p, "prepare the dump of database %q", s.Database())
			}
			if err == nil {
				return conn, state, nil
			}
			conn.close()
		}
		err = s.wrap(ctx, err, "connect to database %q", s.Database())
		if !errors.Is(err, source.ErrUnavailable) || ctx.Err() != nil {
			return nil, state, err // the server refuses: another one would too
		}
		if first == nil {
			first = err
		}
	}
	return nil, standbyState{}, first
}

// tellStandby writes down what a dump of a standby is.
func (d *dump) tellStandby(ctx context.Context, state standbyState) {
	if !state.standby {
		return
	}
	age, _ := state.behind()
	d.info.Standby = &source.Standby{Age: age, Unlogged: state.unlogged}
	log := d.src.log.With("database", d.src.Database(), "host", d.sess.at.host, "port", d.sess.at.port)
	log.InfoContext(ctx, "dumping a standby", "behind", age)
	if state.unlogged > 0 {
		log.WarnContext(ctx, "a standby has no rows of unlogged tables: they are dumped empty", "tables", state.unlogged)
	}
	if state.cancels {
		log.WarnContext(ctx, "replay may cancel a dump that takes longer than max_standby_streaming_delay: set hot_standby_feedback on the standby")
	}
}
