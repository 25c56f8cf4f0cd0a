package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/source"
)

// Abilities are what a node has to carry tasks out with. Nodes tell each other, so that each can say who could do a task.
type Abilities struct {
	Labels    []string       `json:"labels,omitempty"`
	Databases map[string]int `json:"databases,omitempty"` // configured name → newest major version of its client programs; 0 = unknown
	Scratch   map[string]int `json:"scratch,omitempty"`   // the same of scratch servers
	Storages  []string       `json:"storages,omitempty"`  // configured names
	// Sealed are the processors of the backups that it makes which it has no key to open: it restores and verifies none.
	Sealed []string `json:"sealed,omitempty"`
	Away   []string `json:"away,omitempty"` // those of them that the node cannot reach, or that are not the group's
}

// AbilitiesOf are those of a node with this catalog. It asks for the versions of programs, which may take a moment.
func AbilitiesOf(ctx context.Context, c Catalog, labels []string) Abilities {
	asked := map[string]int{} // most sources use the same programs
	a := abilitiesOf(c, func(s source.Source) int {
		p, ok := s.(source.ProgramHaver)
		if !ok {
			return 0
		}
		programs := strings.Join(p.Programs(), "\n")
		if _, known := asked[programs]; !known {
			asked[programs] = p.ClientMajor(ctx)
		}
		return asked[programs]
	})
	a.Labels = slices.Sorted(slices.Values(labels))
	return a
}

func abilitiesOf(c Catalog, client func(source.Source) int) Abilities {
	versions := func(of map[string]source.Source) map[string]int {
		out := make(map[string]int, len(of))
		for name, s := range of {
			out[name] = client(s)
		}
		return out
	}
	return Abilities{Databases: versions(c.Sources), Scratch: versions(c.Scratch), Storages: slices.Sorted(maps.Keys(c.Storages)), Sealed: c.sealed()}
}

// sealed are the processors of new backups that have no key to open what they make.
func (c Catalog) sealed() (names []string) {
	for _, name := range c.Chain {
		p, err := c.Processors.Find(name)
		if k, keyed := p.(processor.Keyed); err == nil && keyed && !k.Opens() {
			names = append(names, name)
		}
	}
	return names
}

// Lacks says what a node of these abilities lacks to carry a task out, one phrase each; none: it may claim the task. Pure.
func (a Abilities) Lacks(t ledger.Task) (lacks []string) {
	lack := func(format string, args ...any) { lacks = append(lacks, fmt.Sprintf(format, args...)) }
	server, kind, of := "", "", map[string]int(nil)
	switch {
	case t.Type == ledger.Create, t.Type == ledger.Restore:
		server, kind, of = t.Database, "database", a.Databases
	case t.Type == ledger.Verify && t.Scratch != "":
		server, kind, of = t.Scratch, "scratch server", a.Scratch
	}
	if server != "" {
		switch client, ok := of[server]; {
		case !ok:
			lack("knows no %s %s", kind, server)
		case client != 0 && client < t.Needs.Client:
			lack("has client programs of version %d at most, version %d is needed", client, t.Needs.Client)
		}
	}
	if len(a.Sealed) > 0 && (t.Type == ledger.Restore || t.Type == ledger.Verify) {
		lack("has no key that opens what %s makes", strings.Join(a.Sealed, " and "))
	}
	if missing := a.missing(t); len(missing) > 0 {
		need, err := Needed(t.Require, len(t.Storages))
		if t.Type != ledger.Create || err != nil || len(t.Storages)-len(missing) < need {
			lacks = append(lacks, missing...)
		}
	}
	for _, label := range t.Needs.Labels {
		if !slices.Contains(a.Labels, label) {
			lack("has no label %s", label)
		}
	}
	return lacks
}

// missing says which of a task's storages a node cannot use.
func (a Abilities) missing(t ledger.Task) (missing []string) {
	for _, name := range t.Storages {
		switch {
		case !slices.Contains(a.Storages, name):
			missing = append(missing, "knows no storage "+name)
		case slices.Contains(a.Away, name):
			missing = append(missing, "does not reach storage "+name)
		}
	}
	return missing
}

// Around is what a planned task's waiting depends on.
type Around struct {
	Active  []ledger.Task        // that have not ended
	Members map[string]Abilities // of each member that could carry tasks out, by node
	Drained []string             // members that could and begin nothing, because they are to be stopped; not among Members
	Unknown bool                 // there are members beside them of which nobody knows what they can do
	Paused  bool                 // the component of the task's type is
	Done    bool                 // it is remembered as completed (Memory)
}

// Waits says why nobody begins a task that is planned and due, one phrase each; none: somebody will. Pure.
func Waits(t ledger.Task, with Around) (why []string) {
	if t.State != ledger.Planned || t.CancelBy != "" {
		return nil
	}
	if with.Done {
		why = append(why, "it is remembered as completed, and the ledger, which says otherwise, is older: fencepost ledger reconcile")
	}
	if with.Paused {
		why = append(why, fmt.Sprintf("component %s is paused", Component(t.Type)))
	}
	for _, other := range with.Active {
		if t.Flight != "" && other.Flight == t.Flight && other.ID != t.ID && other.State != ledger.Planned {
			why = append(why, fmt.Sprintf("task %s (%s) has begun, and they go one at a time", other.ID, other.Type))
		}
	}
	if t.TooMany(with.Active) {
		why = append(why, fmt.Sprintf("server %s makes as many dumps as it may: %d", t.Server, t.MaxDumps))
	}
	if with.Unknown {
		return why
	}
	var unable []string
	for _, node := range slices.Sorted(maps.Keys(with.Members)) {
		lacks := with.Members[node].Lacks(t)
		if len(lacks) == 0 {
			return why
		}
		unable = append(unable, node+" "+strings.Join(lacks, ", and "))
	}
	for _, node := range with.Drained {
		unable = append(unable, node+" is drained")
	}
	if len(unable) == 0 {
		unable = []string{"no member carries out tasks"}
	}
	return append(why, unable...)
}

// able tells whether this node may claim a task. One that only has to be ended, cancelled or expired, needs nothing.
func (w *Worker) able(t ledger.Task) bool {
	if t.CancelBy != "" || t.State == ledger.Planned && elapsed(t.StartBy, w.cfg.Now()) {
		return true
	}
	return !w.doneBefore(t) && len(w.cfg.Abilities().Lacks(t)) == 0
}
