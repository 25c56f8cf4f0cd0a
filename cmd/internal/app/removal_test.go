package app

import (
	"errors"
	"slices"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline/ledger"
)

// TestTheOnlyVoterIsRemoved: the node that leads and alone votes gives both up to the other one, leaves by itself and is
// forgotten; what nobody else has is said before; its home is refused from then on.
func TestTheOnlyVoterIsRemoved(t *testing.T) {
	one := config(t)
	first, stopFirst := start(t, one)
	ready(t, first)
	two := config(t)
	two.Node, two.Seeds, two.Databases, two.Storages = "n2", []string{one.Gossip.Bind}, one.Databases, one.Storages[:1]
	second, _ := start(t, two)
	ready(t, second)
	ctx, p := t.Context(), people{second}

	before, err := p.Removal(ctx, "n1")
	if err != nil || before.State != api.RemovalNone || !slices.Equal(before.Storages, []api.BoundStorage{{Name: "b"}}) {
		t.Fatalf("before: %+v, %v", before, err)
	}
	_, err = p.RemoveNode(ctx, api.NodeName{Node: "n2"})
	wantCode(t, "a node removes itself", err, api.CodeConflict)
	_, err = p.RemoveNode(ctx, api.NodeName{Node: "n9"})
	wantCode(t, "an unknown node is removed", err, api.CodeNotFound)
	if r, err := (people{second}).RemoveNode(ctx, api.NodeName{Node: "n1"}); err != nil || r.State == api.RemovalNone || r.By == "" || !slices.Equal(r.Storages, before.Storages) {
		t.Fatalf("asked for: %+v, %v", r, err)
	}
	select {
	case <-first.Done():
	case <-ctx.Done():
		t.Fatal("n1 does not leave")
	}
	if err := first.Err(); err != nil {
		t.Errorf("n1 has failed: %v", err)
	}
	stopFirst()
	client := api.NewClient(two.Admin.Socket)
	defer client.Close()
	err = api.Watch(ctx, client, api.RemovalPath("n1"), func(api.Removal) bool { return true })
	wantCode(t, "a removed node is shown", err, api.CodeNotFound)
	if servers := second.group.Servers(); len(servers) != 1 || servers[0].Node != "n2" || !servers[0].Voter {
		t.Errorf("the log is kept by %+v", servers)
	}
	if _, _, wanted := second.drainOf("n1"); wanted {
		t.Error("the wish outlives the node")
	}
	again, _ := start(t, one)
	if err := settled(t, again); !errors.Is(err, gms.ErrForgotten) {
		t.Errorf("its home comes back: %v", err)
	}
	_, err = p.RemoveNode(ctx, api.NodeName{Node: "n2"})
	wantCode(t, "the last one removes itself", err, api.CodeConflict)
}

// TestCopiesOfBoundStorages: a backup lies nowhere else when each copy of it that is there is in such a storage.
func TestCopiesOfBoundStorages(t *testing.T) {
	list := []api.BoundStorage{{Name: "a"}, {Name: "b"}}
	for _, copies := range [][]ledger.Copy{
		{{Storage: "a", State: ledger.CopyPresent}, {Storage: "b", State: ledger.CopyPresent}},
		{{Storage: "a", State: ledger.CopyPresent}, {Storage: "c", State: ledger.CopyMissing}},
		{{Storage: "a", State: ledger.CopyPresent}, {Storage: "c", State: ledger.CopyPresent}},
		{{Storage: "b", State: ledger.CopyMissing}, {Storage: "c", State: ledger.CopyPresent}},
	} {
		countCopies(list, ledger.Backup{Copies: copies})
	}
	if want := []api.BoundStorage{{Name: "a", Backups: 3, Only: 2}, {Name: "b", Backups: 1, Only: 1}}; !slices.Equal(list, want) {
		t.Errorf("%+v, want %+v", list, want)
	}
}
