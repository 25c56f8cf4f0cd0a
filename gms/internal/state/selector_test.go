package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

func cand(name string, epoch uint64) candidate {
	return candidate{run: runID(name), node: name[:1], epoch: epoch}
}

func names(list []candidate) string {
	var b strings.Builder
	for _, c := range list {
		b.WriteString(c.node)
	}
	return b.String()
}

func TestSelectorOrders(t *testing.T) {
	list := []candidate{cand("B1", 2), cand("C1", 3), cand("D1", 3), cand("E1", 5), cand("A2", 6)}
	host := func(names ...string) (ids [][]byte) {
		for _, n := range names {
			ids = append(ids, runID(n).Bytes())
		}
		return ids
	}
	tests := []struct {
		name     string
		selector wire.Selector
		dead     candidate
		host     [][]byte
		want     string
	}{
		{"successor, in the middle", wire.Selector_SELECTOR_SUCCESSOR, cand("X1", 4), nil, "EABCD"},
		{"successor, first", wire.Selector_SELECTOR_SUCCESSOR, cand("X1", 1), nil, "BCDEA"},
		{"successor, last", wire.Selector_SELECTOR_SUCCESSOR, cand("X1", 9), nil, "BCDEA"},
		{"successor, one entry", wire.Selector_SELECTOR_SUCCESSOR, cand("X1", 3), nil, "EABCD"},
		{"own node last", wire.Selector_SELECTOR_SUCCESSOR, cand("A1", 4), nil, "EBCDA"},
		{"host first", wire.Selector_SELECTOR_SUCCESSOR, cand("X1", 1), host("D1", "Z1", "C1"), "DCBEA"},
		{"host names own node", wire.Selector_SELECTOR_SUCCESSOR, cand("A1", 1), host("A2", "E1"), "EBCDA"},
		{"rendezvous, pinned", wire.Selector_SELECTOR_RENDEZVOUS, cand("X1", 1), nil, "DCEBA"},
		{"default is rendezvous", wire.Selector_SELECTOR_UNSPECIFIED, cand("X1", 1), nil, "DCEBA"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := choice{component: "backup", dead: tt.dead, selector: tt.selector, host: tt.host}
			if got := names(c.order(list)); got != tt.want {
				t.Errorf("order %s, want %s", got, tt.want)
			}
		})
	}
}

func TestRendezvousIsStableAndSpreads(t *testing.T) {
	var list []candidate
	for i := range 10 {
		list = append(list, cand(string(rune('A'+i))+"1", uint64(i+1)))
	}
	first := map[string]int{}
	for i := range 1000 {
		c := choice{component: fmt.Sprintf("component %d", i), dead: cand("X1", 1)}
		order := c.order(list)
		first[order[0].node]++
		gone := slices.DeleteFunc(slices.Clone(list), func(d candidate) bool { return d.node == order[4].node })
		want := strings.Replace(names(order), order[4].node, "", 1)
		if got := names(c.order(gone)); got != want {
			t.Fatalf("when %s goes, order %s becomes %s", order[4].node, names(order), got)
		}
	}
	for node, n := range first {
		if n < 50 || n > 150 {
			t.Errorf("%s is first for %d of 1000 components, want about 100", node, n)
		}
	}
}

func TestEveryOrderIsAPermutationWhateverTheInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []candidate
		for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, 20), 0, 8, rapid.ID).Draw(t, "nodes") {
			list = append(list, candidate{run: runID(fmt.Sprint(i)), node: fmt.Sprint(i), epoch: rapid.Uint64Range(1, 5).Draw(t, "epoch")})
		}
		c := choice{
			component: "c", selector: wire.Selector(rapid.IntRange(0, 2).Draw(t, "selector")),
			dead: candidate{run: runID("d"), node: fmt.Sprint(rapid.IntRange(0, 20).Draw(t, "dead")), epoch: rapid.Uint64Range(1, 5).Draw(t, "dead epoch")},
		}
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, 20), 0, 8).Draw(t, "host") {
			c.host = append(c.host, runID(fmt.Sprint(i)).Bytes())
		}
		got := c.order(list)
		shuffled := rapid.Permutation(list).Draw(t, "shuffled")
		if !slices.Equal(got, c.order(shuffled)) {
			t.Fatalf("the order depends on the order of the input")
		}
		for i, cd := range got {
			if cd.node == c.dead.node && i != len(got)-1 {
				t.Fatalf("the dead run's own node is not last: %v", got)
			}
		}
		for _, cd := range list {
			if !slices.Contains(got, cd) {
				t.Fatalf("%v got lost", cd)
			}
		}
	})
}
