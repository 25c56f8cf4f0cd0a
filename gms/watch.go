package gms

import (
	"context"
	"fmt"
	"iter"
	"sort"

	"github.com/fencepost/fencepost/gms/internal/state"
)

// Bounds of what is kept for watchers.
const (
	keptChanges = 4096
	keptBytes   = 4 << 20
)

// CacheChange is what one transaction, or the end of a run's bound entries, did to the entries of a component.
type CacheChange struct {
	Version uint64       // its position
	Events  []CacheEvent // in the order of the transaction
}

// CacheEvent is one entry that was put or deleted.
type CacheEvent struct {
	Key
	Value   []byte // nothing when deleted
	Deleted bool   // it is gone; else it was put
}

// recent keeps the last changes of the state cache, in order.
type recent struct {
	floor uint64 // changes up to this position are not known any more
	list  []state.CacheChanged
	size  int
}

// add takes the changes of one entry, and drops the oldest beyond the bounds.
func (r *recent) add(changes []state.Change) {
	for _, c := range changes {
		if c, ok := c.(state.CacheChanged); ok {
			r.list = append(r.list, c)
			r.size += sizeOfChange(c)
		}
	}
	for len(r.list) > keptChanges || r.size > keptBytes && len(r.list) > 1 {
		r.floor = r.list[0].Version
		r.size -= sizeOfChange(r.list[0])
		r.list[0] = state.CacheChanged{}
		r.list = r.list[1:]
	}
}

func sizeOfChange(c state.CacheChanged) (n int) {
	for _, e := range c.Events {
		n += len(e.Key.Component) + len(e.Key.Member) + len(e.Key.Key) + len(e.Value)
	}
	return n
}

// restored forgets all: a snapshot brings no changes.
func (r *recent) restored(position uint64) { *r = recent{floor: position} }

// since lists the changes of a component after a position; false when some are not known any more. One entry may have made
// several changes at one position: they come as one.
func (r *recent) since(component string, from uint64) (list []CacheChange, ok bool) {
	if from < r.floor {
		return nil, false
	}
	first := sort.Search(len(r.list), func(i int) bool { return r.list[i].Version > from })
	for _, c := range r.list[first:] {
		for _, e := range c.Events {
			if e.Key.Component != component {
				continue
			}
			if n := len(list); n == 0 || list[n-1].Version != c.Version {
				list = append(list, CacheChange{Version: c.Version})
			}
			out := CacheEvent{Key: Key{e.Key.Component, e.Key.Member, e.Key.Key}, Value: e.Value, Deleted: e.Deleted}
			list[len(list)-1].Events = append(list[len(list)-1].Events, out)
		}
	}
	return list, true
}

// tellWritten wakes those that wait for entries of the components that were written to; with r.mu held.
func (r *replica) tellWritten(changes []state.Change) {
	for _, c := range changes {
		c, ok := c.(state.CacheChanged)
		if !ok {
			continue
		}
		for _, e := range c.Events {
			if woken := r.written[e.Key.Component]; woken != nil {
				close(woken)
				delete(r.written, e.Key.Component)
			}
		}
	}
}

// tellAllWritten is for a snapshot, which does not tell what it changed; with r.mu held.
func (r *replica) tellAllWritten() {
	for _, woken := range r.written {
		close(woken)
	}
	clear(r.written)
}

// Written returns a channel that is closed when this node, after the call, applies an entry of the log that changes an entry of
// the component, of any member, or installs a snapshot: a hint to read again. Unlike [Cache.Changed] it is silent about the rest
// of the log, most of which is about runs, claims and fences.
func (c *Cache) Written(component string) <-chan struct{} {
	r := c.g.rep
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.written[component] == nil {
		r.written[component] = make(chan struct{})
	}
	return r.written[component]
}

// ReadAll reads all entries of a component in this node's copy, of all members, with the position that they show: the one to
// watch from.
func (c *Cache) ReadAll(component string) (entries []Entry, position uint64) {
	c.g.rep.read(func(m *state.Machine) {
		for _, member := range m.CacheMembers(component) {
			for _, w := range m.CacheList(component, member, "") {
				entries = append(entries, entryOf(w))
			}
		}
		position = m.Position()
	})
	return entries, position
}

// Watch yields every change of a component's entries after a position, in order and without gaps, as this node's copy gets
// them; it blocks in between. The loop ends when it is left; else the last pair has an error: the cause of ctx's end, or
// ErrGap when changes after the position are not kept any more (the last 4,096 are, of at most 4 MiB, and none from before
// a snapshot was installed): read again with ReadAll and go on from there. To go on later, keep the last Version.
func (c *Cache) Watch(ctx context.Context, component string, from uint64) iter.Seq2[CacheChange, error] {
	return func(yield func(CacheChange, error) bool) {
		for {
			list, ok, changed := c.g.rep.changesSince(component, from)
			if !ok {
				yield(CacheChange{}, fmt.Errorf("watch %s from %d: %w", component, from, ErrGap))
				return
			}
			for _, x := range list {
				if !yield(x, nil) {
					return
				}
				from = x.Version
			}
			if len(list) > 0 {
				continue
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(CacheChange{}, context.Cause(ctx))
				return
			}
		}
	}
}
