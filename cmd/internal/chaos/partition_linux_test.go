package chaos

import (
	"context"
	"errors"
	"slices"
)

// partition does a fault of the network.
func (w *world) partition(ctx context.Context, f fault) (undo func() error, err error) {
	node := w.nodes[f.Node]
	switch f.Kind {
	case unplug:
		return func() error { return w.net.link(node, true) }, w.net.link(node, false)
	case lose:
		return func() error { return w.net.lossy(node, 0) }, w.net.lossy(node, f.Share)
	}
	ways, err := w.ways(ctx, f)
	if err != nil {
		return nil, err
	}
	all := func(by int) (err error) {
		for _, way := range ways {
			err = errors.Join(err, w.net.cut(way[0], way[1], by))
		}
		return err
	}
	return func() error { return all(-1) }, all(1)
}

// ways lists who is not reached by whom, from and to.
func (w *world) ways(ctx context.Context, f fault) (ways [][2]string, err error) {
	nodes, node := w.nodes[:w.plan.Nodes], w.nodes[f.Node]
	servers := []string{"pg", "s3", "box", "res"}
	both := func(a, b string) { ways = append(ways, [2]string{a, b}, [2]string{b, a}) }
	switch f.Kind {
	case hideBase:
		both(node, "pg")
	case leadAlone:
		by, view := w.alive(ctx)
		if by == "" {
			return nil, errAway
		}
		node = "n" + view.Leader[1:]
		fallthrough
	case isolate:
		for _, other := range slices.Concat(nodes, servers) {
			if other != node {
				both(node, other)
			}
		}
	case mute, deafen:
		for _, other := range nodes {
			switch {
			case other == node:
			case f.Kind == mute:
				ways = append(ways, [2]string{node, other})
			default:
				ways = append(ways, [2]string{other, node})
			}
		}
	default:
		for i, a := range nodes {
			for j, b := range nodes[:i] {
				if w.apart(f, i, j) {
					both(a, b)
				}
			}
		}
	}
	return ways, nil
}

// apart tells whether two nodes, by number, do not hear each other in a shape.
func (w *world) apart(f fault, i, j int) bool {
	n := w.plan.Nodes
	switch f.Kind {
	case halves:
		return i/2 != j/2 && min(i, j) < 2 // two against three
	case bridged:
		return i != f.Node && j != f.Node && (i+f.Other)%2 != (j+f.Other)%2
	default: // ring
		return (i-j+n)%n != 1 && (j-i+n)%n != 1
	}
}
