package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/source"
)

// An undo gives the name back, with all that belonged to it; a second one takes that back.
func TestUndo(t *testing.T) {
	srv := pg.Server(t)
	s := sampled(t, 0)
	target := s.Database()
	srv.Exec(t, target, `COMMENT ON DATABASE `+ident(target)+` IS 'mine ''x'''`)
	b := takeBackup(t, s, first)
	srv.Exec(t, target, `CREATE TABLE since (); COMMENT ON DATABASE `+ident(target)+` IS 'changed since'`)
	changed := fingerprint(t, target)
	r, p := fill(t, s, first, b, source.RestoreOptions{Target: target, Replace: true, KeepOld: time.Hour})
	if err := r.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	restoredPrint := fingerprint(t, target)
	client, err := pgx.Connect(t.Context(), srv.DSN(target))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(context.Background()) }()

	if err := s.Undo(t.Context(), next(first), p, time.Hour); err != nil {
		t.Fatal(err)
	}
	same(t, changed, fingerprint(t, target))
	if err := client.Ping(t.Context()); err == nil {
		t.Error("a client is still in the database that left the name")
	}
	if dropped, err := s.ExpireOld(t.Context(), next(first)); err != nil || len(dropped) != 0 {
		t.Errorf("expired %v, %v", dropped, err)
	}
	if err := s.Undo(t.Context(), next(next(first)), p, 0); err != nil {
		t.Fatal(err)
	}
	same(t, restoredPrint, fingerprint(t, target))
	if dropped, err := s.ExpireOld(t.Context(), next(first)); err != nil || len(dropped) != 1 || dropped[0] != p.Undo {
		t.Errorf("what was undone was not dropped: %v, %v", dropped, err)
	}
	err = s.Undo(t.Context(), first, p, 0)
	fails(t, err, "attempt was superseded", source.ErrSuperseded)
	hasHint(t, err)
	same(t, restoredPrint, fingerprint(t, target))
	noStray(t)
	nothingLeft(t, first)
}

func TestUndoOfNothing(t *testing.T) {
	s := sampled(t, 0)
	for _, p := range []source.Prepared{{Target: s.Database(), ID: 1}, {Target: s.Database(), InPlace: true}} {
		err := s.Undo(t.Context(), first, p, 0)
		fails(t, err, "replaced no database")
		hasHint(t, err)
	}
	err := s.Undo(t.Context(), first, source.Prepared{Target: s.Database(), ID: 1, Replaces: 2, Undo: "x"}, 0)
	fails(t, err, "superseded", source.ErrSuperseded)
}

// A preview tells what is there and what is wrong, and changes nothing.
func TestPreview(t *testing.T) {
	srv := pg.Server(t)
	s := sampled(t, 1<<20)
	b := takeBackup(t, s, first)
	before := fingerprint(t, s.Database())
	client, err := pgx.Connect(t.Context(), srv.DSN(s.Database())+"&application_name=till")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(context.Background()) }()

	p, err := s.Preview(t.Context(), source.RestoreOptions{Target: s.Database(), Replace: true, Info: b.info})
	if err != nil || !p.Exists || p.Bytes < 1<<20 || len(p.Clients) != 1 || p.Clients[0] != "postgres/till" || majorOf(p.Server) < 13 {
		t.Errorf("preview %+v, %v", p, err)
	}
	p, err = s.Preview(t.Context(), source.RestoreOptions{Target: "not there", Info: b.info})
	if err != nil || p.Exists || p.Bytes != 0 || len(p.Clients) != 0 {
		t.Errorf("preview %+v, %v", p, err)
	}
	_, err = s.Preview(t.Context(), source.RestoreOptions{Target: s.Database(), Info: b.info})
	fails(t, err, "exists", source.ErrTargetExists)
	hasHint(t, err)
	for name, change := range map[string]func(*source.Info){
		"extension": func(i *source.Info) { i.Extensions = map[string]string{"postgis_not": "3"} },
		"role":      func(i *source.Info) { i.Roles = []string{"nobody there"} },
		"version":   func(i *source.Info) { i.ServerVersion = "99.1" },
		"tool":      func(i *source.Info) { i.ToolVersion = "99.1" },
	} {
		info := b.info
		change(&info)
		for _, inPlace := range []bool{false, true} {
			_, err := s.Preview(t.Context(), source.RestoreOptions{Target: s.Database(), Replace: true, Info: info, RestoreChoices: source.RestoreChoices{InPlace: inPlace}})
			if err == nil {
				t.Errorf("%s, in place %v: no error", name, inPlace)
				continue
			}
			hasHint(t, err)
		}
	}
	same(t, before, fingerprint(t, s.Database()))
	nothingLeft(t, previewer)
}

// The COMMIT of an undo is not answered. When the server has got it, the undo has happened, once; when not, nothing has.
func TestUndoUnanswered(t *testing.T) {
	for _, arrives := range []bool{true, false} {
		t.Run(fmt.Sprintf("arrives %v", arrives), func(t *testing.T) {
			srv := pg.Server(t)
			s := sampled(t, 0)
			b := takeBackup(t, s, first)
			srv.Exec(t, s.Database(), `CREATE TABLE since ()`)
			changed := fingerprint(t, s.Database())
			r, p := fill(t, s, first, b, source.RestoreOptions{Target: s.Database(), Replace: true, KeepOld: time.Hour})
			if err := r.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			restoredPrint := fingerprint(t, s.Database())
			proxy, through := behindProxy(t, s)
			proxy.cut.Store(arrives)
			proxy.lose.Store(!arrives)
			err := through.Undo(t.Context(), next(first), p, time.Hour)
			if !proxy.did.Load() {
				t.Error("the answer was not lost: this test shows nothing")
			}
			if arrives {
				if err != nil {
					t.Error(err)
				}
				same(t, changed, fingerprint(t, s.Database()))
			} else {
				fails(t, err, "undo the restore", source.ErrUnavailable)
				same(t, restoredPrint, fingerprint(t, s.Database()))
			}
			noStray(t)
			nothingLeft(t, next(first))
		})
	}
}
