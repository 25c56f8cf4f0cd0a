package app

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/mem"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

// groupOf is what a raiser knows of its group, in a test.
type groupOf struct {
	given, announced uint64
	err              error
}

func (g *groupOf) Known(context.Context) (uint64, error) { return max(g.given, g.announced), g.err }

func (g *groupOf) Announce(_ context.Context, want uint64) (uint64, error) {
	g.announced = max(want, g.announced+1)
	return g.announced, g.err
}

// shelves are storages that cluster c1 owns, which have seen no number above 3.
func shelves(t *testing.T, names ...string) map[string]storage.Storage {
	t.Helper()
	all := map[string]storage.Storage{}
	for _, name := range names {
		all[name] = mem.New()
		if _, err := storage.Adopt(t.Context(), all[name], storage.Adoption{Cluster: "c1", High: 3}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func raiserOf(g *groupOf, all map[string]storage.Storage) *raiser {
	return &raiser{cluster: func() string { return "c1" }, counter: g, storages: func() map[string]storage.Storage { return all }}
}

// TestNumbersNeverGoBack: each token that is granted raises the storages' highest number, and a group made anew begins
// above it, whoever owns them.
func TestNumbersNeverGoBack(t *testing.T) {
	g := &groupOf{given: 1_000}
	r := raiserOf(g, shelves(t, "one", "two"))
	two := r.storages()["two"]
	if err := r.raise(t.Context(), 1_000); err != nil {
		t.Fatal(err)
	}
	high, err := opened{storages: r.storages()}.highest(t.Context())
	if err != nil || high < 1_000 {
		t.Errorf("the highest is %d, %v", high, err)
	}
	if high > g.announced {
		t.Errorf("a storage has seen %d before the group knew of more than %d", high, g.announced)
	}
	if _, err := storage.RaiseHigh(t.Context(), two, "c1", 1<<30); err != nil {
		t.Fatal(err)
	}
	if high, err := (opened{storages: map[string]storage.Storage{"one": r.storages()["one"], "two": two, "new": mem.New()}}).highest(t.Context()); err != nil || high != 1<<30 {
		t.Errorf("the highest of three is %d, %v", high, err)
	}
	boom := errors.New("boom")
	if _, err := (opened{storages: map[string]storage.Storage{"two": storagetest.Inject(two, storagetest.Fail(storagetest.Get, boom))}}).highest(t.Context()); !errors.Is(err, boom) {
		t.Errorf("one that cannot be asked may hold the highest: %v", err)
	}
}

// TestNoTokenIsUsedWhileAStorageIsAhead: neither a new one nor one that would have done, until the group's numbers are above
// what the storage has seen; another process of the same group is not taken for a stranger.
func TestNoTokenIsUsedWhileAStorageIsAhead(t *testing.T) {
	g := &groupOf{given: 1_000}
	r := raiserOf(g, shelves(t, "one", "two"))
	fellow := raiserOf(g, r.storages())
	for token := uint64(1_000); token < 1_010; token++ {
		if err := errors.Join(r.raise(t.Context(), token), fellow.raise(t.Context(), token)); err != nil {
			t.Fatalf("token %d: %v", token, err)
		}
	}
	stranger := g.announced + 1
	if _, err := storage.RaiseHigh(t.Context(), r.storages()["two"], "c1", stranger); err != nil {
		t.Fatal(err)
	}
	if ahead, err := r.look(t.Context()); err != nil || len(ahead) != 1 || !errors.Is(ahead["two"], storage.ErrAhead) {
		t.Fatalf("ahead are %v, %v", ahead, err)
	}
	err := r.raise(t.Context(), 1_011)
	if !errors.Is(err, storage.ErrAhead) || !strings.Contains(err.Error(), "storage two") || !strings.Contains(HintOf(err, ""), "group rebase") {
		t.Errorf("a token is used: %v, hint %q", err, HintOf(err, ""))
	}
	if err := raiserOf(g, r.storages()).raise(t.Context(), 1_011); !errors.Is(err, storage.ErrAhead) {
		t.Errorf("a token of a new process is used: %v", err)
	}
	g.given = stranger + 1
	if err := r.raise(t.Context(), g.given); err != nil {
		t.Errorf("after the numbers were raised: %v", err)
	}
	if ahead, err := r.look(t.Context()); err != nil || len(ahead) != 0 {
		t.Errorf("after the numbers were raised: %v, %v", ahead, err)
	}
}

// TestARollBackIsSeen: a group that was put back to before the start of one of its processes has announced less than the
// storages have seen, however few tokens were granted since.
func TestARollBackIsSeen(t *testing.T) {
	g := &groupOf{given: 1_000}
	all := shelves(t, "one")
	if err := raiserOf(g, all).raise(t.Context(), 1_000); err != nil {
		t.Fatal(err)
	}
	before := *g
	if err := raiserOf(g, all).raise(t.Context(), 1_001); err != nil {
		t.Fatal(err)
	}
	if err := raiserOf(&before, all).raise(t.Context(), 1_001); !errors.Is(err, storage.ErrAhead) {
		t.Errorf("token 1001 is used again: %v", err)
	}
}

// TestAStorageThatIsAwayStopsNobody: as long as another one has been told; and what is not known of the group stops all.
func TestAStorageThatIsAwayStopsNobody(t *testing.T) {
	g, boom := &groupOf{given: 1_000}, errors.New("boom")
	all := shelves(t, "one", "two")
	well := all["two"]
	all["two"] = storagetest.Inject(well, storagetest.Fail(storagetest.Get, boom))
	r := raiserOf(g, all)
	for token := uint64(1_000); token < 1_003; token++ {
		if err := r.raise(t.Context(), token); err != nil {
			t.Errorf("one of two is away: %v", err)
		}
	}
	if want := uint64(1_000 + raiseAhead); g.announced != want {
		t.Errorf("%d was announced, want %d: once for many tokens", g.announced, want)
	}
	all["two"] = well
	if err := r.raise(t.Context(), 1_004); err != nil {
		t.Error(err)
	}
	if o, err := storage.CheckOwner(t.Context(), well, "c1"); err != nil || o.High < 1_004 {
		t.Errorf("it is back, and was told of %d, %v", o.High, err)
	}
	all["one"], all["two"] = storagetest.Inject(all["one"], storagetest.Fail(storagetest.Get, boom)), storagetest.Inject(well, storagetest.Fail(storagetest.Get, boom))
	if err := raiserOf(g, all).raise(t.Context(), 1_004); !errors.Is(err, boom) {
		t.Errorf("all are away: %v", err)
	}
	g.err = boom
	if err := raiserOf(g, shelves(t, "one")).raise(t.Context(), 1_004); !errors.Is(err, boom) {
		t.Errorf("the group does not answer: %v", err)
	}
}

// TestRebaseHealsAStorageThatIsAhead: on a node, no claim is granted and the status says why and what to do, until a person
// raises the numbers.
func TestRebaseHealsAStorageThatIsAhead(t *testing.T) {
	c := config(t)
	a, _ := start(t, c)
	ready(t, a)
	ctx := t.Context()
	if _, err := storage.RaiseHigh(ctx, a.outfitNow().storages["b"], a.group.ClusterID(), 1<<52); err != nil {
		t.Fatal(err)
	}
	a.checkOwners(ctx)
	if err := a.strangeStorages(); !errors.Is(err, storage.ErrAhead) || !strings.Contains(err.Error(), "storage b") {
		t.Fatalf("looked: %v", err)
	}
	s, err := people{a}.Status(ctx)
	if err != nil || !strings.Contains(strings.Join(s.Problems, "\n"), "storage is ahead of the group") {
		t.Errorf("problems %v, %v", s.Problems, err)
	}
	b := a.work.bridge
	_, err = b.TryClaim(ctx, "by hand", "t1", 1)
	if e := translate(err); e == nil || e.Code != api.CodeConflict || !strings.Contains(e.Hint, "group rebase") {
		t.Errorf("claim: %v, told as %+v", err, e)
	}
	for _, c := range a.group.Claims() {
		if c.Item == "t1" {
			t.Errorf("a claim that nobody may use is held: %+v", c)
		}
	}
	if _, err := (people{a}).Rebase(ctx, api.Rebase{Above: 1 << 53, Why: "a test"}); translate(err) == nil || translate(err).Code != api.CodeUsage {
		t.Errorf("above what there is room for: %v", err)
	}
	n, err := people{a}.Rebase(ctx, api.Rebase{Why: "a test"})
	if err != nil || n.Base <= 1<<52 || n.Before >= 1<<52 {
		t.Fatalf("%+v, %v", n, err)
	}
	if err := a.strangeStorages(); err != nil {
		t.Errorf("after the rebase: %v", err)
	}
	claim, err := b.TryClaim(ctx, "by hand", "t1", 1)
	if err != nil || claim.Token <= 1<<52 {
		t.Errorf("after the rebase: %+v, %v", claim, err)
	}
	if err := b.EndClaim(ctx, claim, true); err != nil {
		t.Error(err)
	}
}
