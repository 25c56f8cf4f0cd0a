package groupstate

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/processor/zstd"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/mem"
)

var now = time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)

func sample() State {
	return State{
		Records:  []Record{{"settings/one/storage/disk", json.RawMessage(`{"format":1,"spec":{"name":"disk"}}`)}, {"user/ann", json.RawMessage(`{"name":"ann","hash":"$argon2id$the-hash"}`)}},
		Storages: map[string]string{"disk": "s1"}, Signers: []Signer{{"ab", "n1", "c1"}},
		Marks: map[string]ledger.Mark{"b1": {Pinned: true, By: "ann", At: now}}, Disabled: map[string]string{"nightly": "ann"}, Paused: map[string]string{"prune": "ann"}, Ledger: "embedded",
	}
}

// maker is a node that seals for storage s1 of group c1.
type maker struct {
	head Head
	key  ed25519.PrivateKey
}

func newMaker(token uint64) maker {
	public, private, _ := ed25519.GenerateKey(nil)
	return maker{Head{Group: "shop", Cluster: "c1", Storage: "s1", Token: token, Made: now, Node: "n1", Key: public}, private}
}

func (m maker) seal(t *testing.T, s State, chain ...processor.Processor) []byte {
	t.Helper()
	text, err := Seal(m.head, s, chain, func(b []byte) []byte { return ed25519.Sign(m.key, b) })
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// lock is a processor that encrypts, after a fashion: it opens with the key that it was closed with.
type lock struct{ key byte }

func (l lock) Name() string    { return "lock" }
func (l lock) Precedence() int { return 50 }
func (l lock) KitID() string   { return fmt.Sprintf("kit%d", l.key) }
func (l lock) Opens() bool     { return true }

func (l lock) Wrap(w io.Writer) (io.WriteCloser, error) {
	_, err := w.Write([]byte{l.key})
	return locking{l, w}, err
}

func (l lock) Unwrap(r io.Reader) (io.ReadCloser, error) {
	first := make([]byte, 1)
	if _, err := io.ReadFull(r, first); err != nil || first[0] != l.key {
		return nil, fmt.Errorf("no identity matched: %w", processor.ErrKey)
	}
	return io.NopCloser(unlocking{l, r}), nil
}

type locking struct {
	lock
	to io.Writer
}

func (l locking) Close() error { return nil }

func (l locking) Write(p []byte) (int, error) {
	out := bytes.Clone(p)
	for i := range out {
		out[i] ^= l.key
	}
	return l.to.Write(out)
}

type unlocking struct {
	lock
	from io.Reader
}

func (l unlocking) Read(p []byte) (int, error) {
	n, err := l.from.Read(p)
	for i := range p[:n] {
		p[i] ^= l.key
	}
	return n, err
}

func registry(t *testing.T, ps ...processor.Processor) processor.Registry {
	t.Helper()
	r, err := processor.NewRegistry(ps...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var owner = storage.Owner{Cluster: "c1", Storage: "s1"}

// TestThereAndBack: what is sealed opens as it was, with and without encryption; with it nothing of it can be read.
func TestThereAndBack(t *testing.T) {
	m, own := newMaker(7), lock{0xa5}
	for _, chain := range [][]processor.Processor{nil, {zstd.Default()}, {zstd.Default(), own}} {
		text := m.seal(t, sample(), chain...)
		sealed, err := Parse(Name(7), text)
		if err != nil {
			t.Fatal(err)
		}
		if err := sealed.Belongs(owner, ""); err != nil {
			t.Error(err)
		}
		got, err := sealed.Open(registry(t, zstd.Default(), own))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(sample(), got); d != "" {
			t.Error(d)
		}
		if got.Digest() != sample().Digest() {
			t.Error("another digest")
		}
		if hidden := !bytes.Contains(text, []byte("the-hash")); Encrypts(chain) && !hidden {
			t.Error("a hash can be read")
		}
	}
	packed, err := sample().Pack()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Unpack(packed); err != nil || cmp.Diff(sample(), got) != "" {
		t.Error(err, cmp.Diff(sample(), got))
	}
}

// TestRefused: an object that is cut or changed anywhere, of a newer format, renamed, copied from another storage, another
// group's, or not opened by the keys, is one line that says so, and no state.
func TestRefused(t *testing.T) {
	m, own := newMaker(7), lock{0xa5}
	text := m.seal(t, sample(), zstd.Default(), own)
	known := registry(t, zstd.Default(), own)
	open := func(name string, text []byte, owner storage.Owner, known processor.Registry) error {
		sealed, err := Parse(name, text)
		if err == nil {
			err = sealed.Belongs(owner, "")
		}
		if err == nil {
			_, err = sealed.Open(known)
		}
		return err
	}
	if err := open(Name(7), text, owner, known); err != nil {
		t.Fatal(err)
	}
	newer := bytes.Replace(text, []byte(`"format":1`), []byte(`"format":2`), 1)
	for what, c := range map[string]struct {
		name  string
		text  []byte
		owner storage.Owner
		known processor.Registry
		want  error
		says  string
	}{
		"cut":             {Name(7), text[:len(text)-1], owner, known, ErrDamaged, "bytes of"},
		"longer":          {Name(7), append(bytes.Clone(text), 'x'), owner, known, ErrDamaged, "bytes of"},
		"cut in the head": {Name(7), text[:20], owner, known, ErrDamaged, "no first line"},
		"empty":           {Name(7), nil, owner, known, ErrDamaged, "no first line"},
		"something else":  {Name(7), []byte("hello\nworld\n"), owner, known, ErrDamaged, "none of a state"},
		"head changed":    {Name(7), bytes.Replace(text, []byte(`"node":"n1"`), []byte(`"node":"n2"`), 1), owner, known, ErrDamaged, "signature"},
		"newer":           {Name(7), newer, owner, known, ErrNewer, "format 2"},
		"renamed":         {Name(8), text, owner, known, ErrForeign, "number 7 under another name"},
		"copied":          {Name(7), text, storage.Owner{Cluster: "c1", Storage: "s2"}, known, ErrForeign, "another storage"},
		"another group's": {Name(7), text, storage.Owner{Cluster: "c2", Storage: "s1"}, known, ErrForeign, "of group shop"},
		"other keys":      {Name(7), text, owner, registry(t, zstd.Default(), lock{0x5a}), ErrLocked, "keys"},
		"unknown filter":  {Name(7), text, owner, registry(t, zstd.Default()), nil, `unknown processor "lock"`},
	} {
		err := open(c.name, c.text, c.owner, c.known)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := 0; i < len(text); i += 1 + len(text)/97 { // wherever a bit tips over
		bad := bytes.Clone(text)
		bad[i] ^= 4
		if err := open(Name(7), bad, owner, known); err == nil {
			t.Errorf("byte %d of %d was changed, and it opened", i, len(text))
		}
	}
	if sealed, err := Parse(Name(7), text); err != nil || sealed.Belongs(storage.Owner{Cluster: "c2", Storage: "s1"}, "c1") != nil {
		t.Error("a group that has taken the storage over is refused what the one before it has left:", err)
	}
}

// TestPrune: the newest stay, whatever order they came in; nothing that is no state goes, and nothing of what lets nothing
// be removed. A late one is older by its name.
func TestPrune(t *testing.T) {
	ctx := t.Context()
	fill := func(s storage.Storage) {
		for i := range Keep + 3 {
			put(t, s, Name(uint64(1_000_000-i)))
		}
		put(t, s, storage.GroupFolder+"/other")
		put(t, s, "b1/7/data")
	}
	s := mem.New()
	fill(s)
	put(t, s, Name(9)) // a late writer
	for range 2 {
		if err := Prune(ctx, s, now); err != nil {
			t.Fatal(err)
		}
	}
	list, err := List(ctx, s)
	if err != nil || len(list) != Keep || list[0].Token != 1_000_000 || list[Keep-1].Token != 1_000_001-Keep {
		t.Errorf("%d are left: %v, %v", len(list), list, err)
	}
	for _, name := range []string{storage.GroupFolder + "/other", "b1/7/data"} {
		if _, err := s.Stat(ctx, name); err != nil {
			t.Error(err)
		}
	}
	kept := mem.New()
	fill(kept)
	if err := Prune(ctx, storage.AppendOnly(kept, slog.New(slog.DiscardHandler)), now); err != nil {
		t.Error(err)
	}
	if list, err := List(ctx, kept); err != nil || len(list) != Keep+3 {
		t.Errorf("append-only: %d, %v", len(list), err)
	}
	locked := lockedUntil{mem.New(), now.Add(time.Hour)}
	fill(locked)
	if err := Prune(ctx, locked, now); err != nil {
		t.Error(err)
	}
	if list, _ := List(ctx, locked); len(list) != Keep+3 {
		t.Errorf("locked: %d are left", len(list))
	}
	if err := Prune(ctx, locked, now.Add(2*time.Hour)); err != nil {
		t.Error(err)
	}
	if list, _ := List(ctx, locked); len(list) != Keep {
		t.Errorf("not locked any more: %d are left", len(list))
	}
}

// lockedUntil lets nothing be removed before a time.
type lockedUntil struct {
	storage.Storage
	until time.Time
}

func (l lockedUntil) LockedUntil(context.Context, string) (time.Time, error) { return l.until, nil }

func put(t *testing.T, s storage.Storage, name string) {
	t.Helper()
	if _, err := s.Put(t.Context(), name, storage.Bytes([]byte("x")), storage.Condition{}); err != nil {
		t.Fatal(err)
	}
}

func TestNames(t *testing.T) {
	for _, token := range []uint64{1, 42, 1 << 52, 1<<53 - 1} {
		if got, ok := TokenOf(Name(token)); !ok || got != token {
			t.Errorf("%d is called %s, which is of %d", token, Name(token), got)
		}
		if err := storage.ValidName(Name(token)); err != nil {
			t.Error(err)
		}
	}
	if !slices.IsSorted([]string{Name(9), Name(10), Name(1 << 52)}) {
		t.Error("the order of names is not that of tokens")
	}
	for _, name := range []string{storage.GroupFolder + "/7", storage.GroupFolder + "/x", "00000000000000000007", storage.OwnerName} {
		if _, ok := TokenOf(name); ok {
			t.Errorf("%s has a token", name)
		}
	}
}

// TestDue: at once, after a change but not within the minute, and each night.
func TestDue(t *testing.T) {
	is := func(at time.Time, digest string) Copy { return Copy{Format: 1, Object: "x", At: at, Digest: digest} }
	for i, c := range []struct {
		is    Copy
		tried time.Duration // ago
		want  bool
	}{
		{Copy{}, time.Hour, true},
		{Copy{}, 30 * time.Second, false}, // it was tried
		{is(now.Add(-time.Hour), "a"), time.Hour, false},
		{is(now.Add(-time.Hour), "b"), time.Hour, true},
		{is(now.Add(-30*time.Second), "b"), time.Hour, false},
		{is(now.Add(-12*time.Hour), "a"), time.Hour, true}, // before the last night
		{is(now.Add(-10*time.Hour), "a"), time.Hour, false},
	} {
		if got := c.is.Due("a", now.Add(-c.tried), now); got != c.want {
			t.Errorf("%d: %v", i, got)
		}
	}
	early := now.Truncate(24 * time.Hour).Add(30 * time.Minute)
	if is(early.Add(-2*time.Hour), "a").Due("a", time.Time{}, early) {
		t.Error("half past midnight is no night yet")
	}
	failed := Copy{}.Failed(errors.New("away"), now)
	again := failed.Failed(errors.New("still away"), now.Add(9*time.Minute))
	if again.Problem != "still away" || again.Late(now.Add(9*time.Minute)) || !again.Late(now.Add(10*time.Minute)) {
		t.Errorf("%+v", again)
	}
	if c := is(now, "a"); c.Old(now.Add(35*time.Hour)) || !c.Old(now.Add(36*time.Hour)) || failed.Old(now.Add(99*time.Hour)) {
		t.Error("old")
	}
}

func TestCompare(t *testing.T) {
	r := func(key, value string) Record { return Record{key, json.RawMessage(value)} }
	c := Compare([]Record{r("a", `{"x": 1}`), r("b", `2`), r("d", `4`)}, []Record{r("a", `{"x":1}`), r("b", `3`), r("c", `3`)})
	if got := fmt.Sprintf("%s %d %s", c.New, c.Same, c.Against); got != `[{b 3} {c 3}] 1 [b d]` {
		t.Error(got)
	}
	if c := Compare(nil, []Record{r("a", `1`)}); len(c.Against) != 0 || len(c.New) != 1 {
		t.Errorf("%+v", c)
	}
}
