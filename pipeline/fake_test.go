package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fencepost/fencepost/pipeline/source"
)

// fakeServer is a database server in memory: named databases with identities, dumps and restores with hooks.
type fakeServer struct {
	mu      sync.Mutex
	nextID  uint32
	byName  map[string]fakeDB
	commits int
	settled []source.Attempt
	dead    map[uint64]bool // tokens whose process is gone: their Abort does nothing
	inPlace map[string]bool // task → its restore in place was committed
	asked   []source.DumpOptions
	step    time.Duration // from the snapshot of one dump to that of the next
	dumps   int

	streams  int      // of rows, in each dump; 0 and 1: one archive
	restored []string // parts of the latest restore, in the order in which they ended
	identity string   // of the server
	version  string   // that dumps say
	undone   []source.Prepared

	onDump   func(ctx context.Context) error                          // when a dump is started
	onWrite  func(ctx context.Context, part string, sent int64) error // before each piece of a part
	onCommit func(ctx context.Context) error                          // before the swap
	onSettle func() error
}

type fakeDB struct {
	id    uint32
	data  []byte
	owner source.Attempt // of a prepared database
}

func newServer() *fakeServer {
	s := &fakeServer{byName: map[string]fakeDB{}, dead: map[uint64]bool{}, inPlace: map[string]bool{}}
	s.set("shop", patternOf(700_000))
	return s
}

// patternOf makes n bytes that compress a little and differ everywhere.
func patternOf(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "row %d of the table; %x\n", i, uint32(i)*2654435761)
	}
	return b.Bytes()[:n]
}

func (s *fakeServer) set(name string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextID++
	s.byName[name] = fakeDB{id: s.nextID, data: data}
}

func (s *fakeServer) get(name string) (fakeDB, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	db, ok := s.byName[name]
	return db, ok
}

// names lists all databases, in no order.
func (s *fakeServer) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for name := range s.byName {
		out = append(out, name)
	}
	return out
}

func (s *fakeServer) kill(token uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead[token] = true
}

func (s *fakeServer) Dump(ctx context.Context, a source.Attempt) (source.Dump, error) {
	if s.onDump != nil {
		if err := s.onDump(ctx); err != nil {
			return nil, err
		}
	}
	db, ok := s.get("shop")
	if !ok {
		return nil, errors.New("database is gone")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dumps++
	return &fakeDump{s: s, data: db.data, at: fakeTime.Add(time.Duration(s.dumps) * s.step)}, nil
}

// Server implements source.Placed.
func (s *fakeServer) Server() string { return "fake:5432" }

// Identity implements source.Identifier.
func (s *fakeServer) Identity(context.Context) (string, error) { return s.identity, nil }

func (s *fakeServer) DumpWith(ctx context.Context, a source.Attempt, o source.DumpOptions) (source.Dump, error) {
	s.mu.Lock()
	s.asked = append(s.asked, o)
	s.mu.Unlock()
	return s.Dump(ctx, a)
}

type fakeDump struct {
	s    *fakeServer
	data []byte
	at   time.Time
}

// fakeTime is that of all dumps, unless the server takes steps.
var fakeTime = time.Date(1999, 12, 1, 0, 0, 0, 0, time.UTC)

func (d *fakeDump) Parts() []string {
	if d.s.streams < 2 {
		return []string{source.PartData, source.PartDatabase}
	}
	parts := []string{source.PartPre, source.PartPost, source.PartData}
	for i := range d.s.streams - 1 {
		parts = append(parts, fmt.Sprintf("data-%d", i+2))
	}
	return append(parts, source.PartDatabase)
}

// content is what one part of a database holds: with streams each has a piece of it.
func (d *fakeDump) content(part string) []byte {
	switch {
	case part == source.PartDatabase:
		return []byte("ALTER DATABASE shop OWNER TO ann;\n")
	case !source.IsStream(part):
		return []byte(part + "\n")
	case d.s.streams < 2:
		return d.data
	}
	i := slices.Index(d.Parts(), part) - 2
	return d.data[len(d.data)*i/d.s.streams : len(d.data)*(i+1)/d.s.streams]
}

func (d *fakeDump) Write(ctx context.Context, part string, w io.Writer) error {
	data := d.content(part)
	for sent := 0; ; {
		if d.s.onWrite != nil {
			if err := d.s.onWrite(ctx, part, int64(sent)); err != nil {
				return err
			}
		}
		if sent == len(data) {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("pg_dump was ended: %w", source.ErrIncomplete)
		}
		n := min(64<<10, len(data)-sent)
		if _, err := w.Write(data[sent : sent+n]); err != nil {
			return fmt.Errorf("pg_dump lost its reader: %w", source.ErrIncomplete) // as a child process would say it
		}
		sent += n
	}
}

func (d *fakeDump) Info() source.Info {
	return source.Info{Kind: "fake", ServerVersion: d.s.version, Database: "shop", AsOf: d.at, EstimateBytes: int64(len(d.data))}
}
func (d *fakeDump) Close() error { return nil }

func (s *fakeServer) Restore(_ context.Context, a source.Attempt, o source.RestoreOptions) (source.Restore, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, exists := s.byName[o.Target]
	if exists && !o.Replace {
		return nil, fmt.Errorf("database %q: %w", o.Target, source.ErrTargetExists)
	}
	if o.InPlace {
		return &fakeRestore{s: s, a: a, p: source.Prepared{Target: o.Target, ID: old.id, InPlace: true}}, nil
	}
	s.nextID++
	p := source.Prepared{Database: fmt.Sprintf("%s__fp_%d", o.Target, a.Token), ID: s.nextID, Target: o.Target, Replaces: old.id}
	if exists {
		p.Undo = fmt.Sprintf("%s__was_%d", o.Target, a.Token)
	}
	s.byName[p.Database] = fakeDB{id: p.ID, owner: a}
	return &fakeRestore{s: s, a: a, p: p}, nil
}

type fakeRestore struct {
	s *fakeServer
	a source.Attempt
	p source.Prepared

	mu    sync.Mutex
	parts map[string][]byte
	order []string // of the ends
}

func (r *fakeRestore) Read(_ context.Context, part string, rd io.Reader) error {
	data, err := io.ReadAll(rd)
	if err != nil {
		return fmt.Errorf("pg_restore: %w", source.ErrIncomplete)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.parts == nil {
		r.parts = map[string][]byte{}
	}
	r.parts[part] = data
	r.order = append(r.order, part)
	r.s.mu.Lock()
	r.s.restored = r.order
	r.s.mu.Unlock()
	return nil
}

// content puts the streams together again.
func (r *fakeRestore) content() (data []byte) {
	for _, stage := range source.Stages(slices.Sorted(maps.Keys(r.parts))) {
		for _, part := range stage {
			if source.IsStream(part) {
				data = append(data, r.parts[part]...)
			}
		}
	}
	return data
}

func (r *fakeRestore) Check(context.Context) (source.Prepared, error) { return r.p, nil }

func (r *fakeRestore) Commit(ctx context.Context) error {
	if r.s.onCommit != nil {
		if err := r.s.onCommit(ctx); err != nil {
			return err
		}
	}
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if r.p.InPlace {
		for _, a := range r.s.settled {
			if a.Task == r.a.Task && a.Token > r.a.Token {
				return fmt.Errorf("commit in place: %w", source.ErrSuperseded)
			}
		}
		r.s.byName[r.p.Target] = fakeDB{id: r.p.ID, data: r.content()}
		r.s.inPlace[r.a.Task] = true
		r.s.commits++
		return nil
	}
	db, ok := r.s.byName[r.p.Database]
	if !ok || db.id != r.p.ID || r.s.byName[r.p.Target].id != r.p.Replaces {
		return fmt.Errorf("swap: %w", source.ErrSuperseded)
	}
	if r.p.Undo != "" {
		r.s.byName[r.p.Undo] = r.s.byName[r.p.Target]
	}
	delete(r.s.byName, r.p.Database)
	r.s.byName[r.p.Target] = fakeDB{id: r.p.ID, data: r.content()}
	r.s.commits++
	return nil
}

func (r *fakeRestore) Abort() error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if db, ok := r.s.byName[r.p.Database]; ok && db.id == r.p.ID && !r.s.dead[r.a.Token] {
		delete(r.s.byName, r.p.Database)
	}
	return nil
}

func (s *fakeServer) Settle(_ context.Context, a source.Attempt, p source.Prepared) (source.Outcome, error) {
	if s.onSettle != nil {
		if err := s.onSettle(); err != nil {
			return 0, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = append(s.settled, a)
	for name, db := range s.byName {
		if strings.Contains(name, "__fp_") && db.owner.Task == a.Task && db.owner.Token < a.Token {
			delete(s.byName, name)
		}
	}
	if p.InPlace {
		if s.inPlace[a.Task] {
			return source.Committed, nil
		}
		return source.Undone, nil
	}
	if p.ID != 0 && s.byName[p.Target].id == p.ID {
		return source.Committed, nil
	}
	return source.Undone, nil
}
