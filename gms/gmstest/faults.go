package gmstest

import (
	"maps"
	"slices"
)

// Pause stops processes as SIGSTOP does, as far as a bubble allows: nothing they send leaves, nothing sent to them
// arrives, while connections stay and their host still takes new ones. Their goroutines and clocks go on, so unlike a
// stopped process they notice that nobody answers.
func (w *World) Pause(names ...string) { w.setPaused(true, names) }

// Resume lets paused processes go on: what waited for them arrives, and what they meant to send leaves.
func (w *World) Resume(names ...string) { w.setPaused(false, names) }

func (w *World) setPaused(stopped bool, names []string) {
	w.t.Helper()
	for _, name := range names {
		n := w.Node(name)
		if !n.Alive() {
			w.t.Fatalf("pause or resume %s: %v", name, errDead)
		}
		w.observer.troubled(n, stopped)
		if stopped {
			n.setLife(paused)
		} else {
			n.setLife(running)
		}
		w.net.pause(n.site.ip, stopped)
	}
}

// StallDisk has every write of a node's log hang from now on, as a disk does that has gone away, until the node is killed.
// Its group fails with gms.ErrDiskStalled some seconds later; to kill it then is up to the test, as it is to the host.
func (w *World) StallDisk(name string) {
	w.t.Helper()
	n := w.Node(name)
	if !n.Alive() {
		w.t.Fatalf("stall the disk of %s: %v", name, errDead)
	}
	w.observer.troubled(n, true)
	n.site.disk.Stall()
}

// SetLink sets what happens to what one node sends to another; the way back is a link of its own.
func (w *World) SetLink(from, to string, l Link) {
	w.t.Helper()
	w.setLinks(map[[2]string]Link{{from, to}: l})
}

// Weather sets what happens on all links, besides what SetLink says.
func (w *World) Weather(l Link) {
	w.net.change(func() { w.net.all = l })
}

func (w *World) setLinks(links map[[2]string]Link) {
	w.t.Helper()
	byIP := map[[2]string]Link{}
	for pair, l := range links {
		byIP[[2]string{w.site(pair[0]).ip, w.site(pair[1]).ip}] = l
	}
	w.net.change(func() { maps.Copy(w.net.links, byIP) })
	w.observer.relinked()
}

// CutOneWay cuts what from sends to each of the others, or to all when none is named.
func (w *World) CutOneWay(from string, to ...string) {
	w.t.Helper()
	links := map[[2]string]Link{}
	for _, other := range w.names {
		if other != from && (len(to) == 0 || slices.Contains(to, other)) {
			links[[2]string{from, other}] = Link{Cut: true}
		}
	}
	w.setLinks(links)
}

// Partition cuts, both ways, all links between nodes of different sides. Nodes that are on no side make one together.
func (w *World) Partition(sides ...[]string) {
	w.t.Helper()
	side := map[string]int{}
	for i, names := range sides {
		for _, name := range names {
			side[name] = i + 1
		}
	}
	links := map[[2]string]Link{}
	for _, a := range w.names {
		for _, b := range w.names {
			if a != b {
				links[[2]string{a, b}] = Link{Cut: side[a] != side[b]}
			}
		}
	}
	w.setLinks(links)
}

// Reject puts a firewall between two nodes that refuses each in the other's name.
func (w *World) Reject(a, b string) {
	w.t.Helper()
	w.setLinks(map[[2]string]Link{{a, b}: {Rejected: true}, {b, a}: {Rejected: true}})
}

// Isolate cuts a node off from all others.
func (w *World) Isolate(name string) { w.Partition([]string{name}) }

// Bridge cuts the two sides off from each other, but for one node that reaches and is reached by all.
func (w *World) Bridge(over string, sides ...[]string) {
	w.t.Helper()
	w.Partition(sides...)
	links := map[[2]string]Link{}
	for _, other := range w.names {
		if other != over {
			links[[2]string{over, other}], links[[2]string{other, over}] = Link{}, Link{}
		}
	}
	w.setLinks(links)
}

// Heal makes all links whole again, the weather included. Paused nodes stay paused.
func (w *World) Heal() {
	w.net.change(func() {
		clear(w.net.links)
		w.net.all = Link{}
	})
	w.observer.relinked()
}
