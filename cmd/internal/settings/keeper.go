package settings

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/kept"
	"github.com/fencepost/fencepost/configs"
)

// Config configures a Keeper.
type Config struct {
	Store kept.Store
	// Taken are names that are in the files of nodes, as "database shop", each with the node; nil = none. It must not block.
	Taken func() map[string]string
	// Busy says why something that there is cannot be removed now; nil = never.
	Busy func(ctx context.Context, kind, name string) error
	// Check looks at what only those who use settings understand; nil = nothing.
	Check func(configs.Settings) error
	// Writes is the protocol of the group: what came later is not taken yet; nil = whatever is known. It must not block.
	Writes func() uint32
	Now    func() time.Time // required
}

// Keeper changes settings. Safe for concurrent use, on any number of nodes.
type Keeper struct{ cfg Config }

// New makes a keeper of what is in the store.
func New(cfg Config) *Keeper {
	if cfg.Taken == nil {
		cfg.Taken = func() map[string]string { return nil }
	}
	if cfg.Busy == nil {
		cfg.Busy = func(context.Context, string, string) error { return nil }
	}
	return &Keeper{cfg}
}

// State is what is kept now, with all that was committed before the call.
func (k *Keeper) State(ctx context.Context) (State, error) {
	records, err := k.cfg.Store.List(ctx, Prefix)
	return Read(records), err
}

// Settings are those of now.
func (k *Keeper) Settings(ctx context.Context) (api.Settings, error) {
	s, err := k.State(ctx)
	out := api.Settings{Version: s.Version, Settings: []api.Setting{}}
	for _, o := range s.Settings.Objects() {
		out.Settings = append(out.Settings, api.Setting(o))
	}
	return out, err
}

// Plan tells what Apply would do.
func (k *Keeper) Plan(ctx context.Context, r api.ApplySettings) (api.AppliedSettings, error) {
	s, err := k.State(ctx)
	if err != nil {
		return api.AppliedSettings{}, err
	}
	p, err := k.plan(ctx, s, r)
	return p.shown(s.Version), err
}

func (p plan) shown(version uint64) api.AppliedSettings {
	return api.AppliedSettings{Version: version, Changes: append([]api.SettingChange{}, p.changes...), Same: p.same, Left: p.left}
}

// Apply makes the group have these settings. Errors of code usage, conflict or busy changed nothing.
func (k *Keeper) Apply(ctx context.Context, r api.ApplySettings) (api.AppliedSettings, error) {
	return k.change(ctx, func(s State) (plan, error) { return k.plan(ctx, s, r) })
}

// Remove takes one away.
func (k *Keeper) Remove(ctx context.Context, kind, name string) (api.AppliedSettings, error) {
	return k.change(ctx, func(s State) (plan, error) {
		var rest []api.Setting
		there := false
		for _, o := range s.Settings.Objects() {
			if o.Kind == kind && o.Name == name {
				there = true
				continue
			}
			rest = append(rest, api.Setting(o))
		}
		if !there {
			return plan{}, &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("there is no %s %q in the group's settings", kind, name), Hint: "fencepost export shows what there is; what is in a node's file is changed there"}
		}
		return k.plan(ctx, s, api.ApplySettings{Settings: rest, Prune: true})
	})
}

// change commits what decide wants, which may be called several times.
func (k *Keeper) change(ctx context.Context, decide func(State) (plan, error)) (out api.AppliedSettings, err error) {
	err = kept.Update(ctx, k.cfg.Store, HeadKey, func(r kept.Record) ([]kept.Change, error) {
		s, err := k.State(ctx)
		if err != nil {
			return nil, err
		}
		p, err := decide(s)
		if err != nil {
			return nil, err
		}
		out = p.shown(s.Version)
		if len(p.changes) == 0 {
			return nil, nil
		}
		out.Version++
		return append(p.records(s), kept.Put(HeadKey, head{format, out.Version}, r.Version)), nil
	})
	return out, err
}

// records are the changes of the store that make up a plan.
func (p plan) records(s State) (list []kept.Change) {
	for _, c := range p.changes {
		key := oneKey(configs.Object{Kind: c.Kind, Name: c.Name})
		if c.Change != api.SettingRemoved {
			list = append(list, kept.Put(key, one{format, c.After, c.Kind}, s.records[key].Version))
			continue
		}
		list = append(list, kept.Delete(s.records[key]))
		if c.Kind != "server" {
			continue
		}
		for k, r := range s.records {
			if k == lookPrefix+c.Name || strings.HasPrefix(k, foundPrefix+c.Name+"/") {
				list = append(list, kept.Delete(r))
			}
		}
	}
	return list
}

// plan decides what r means, and refuses what makes no sense.
func (k *Keeper) plan(ctx context.Context, s State, r api.ApplySettings) (plan, error) {
	if r.Version != 0 && r.Version != s.Version {
		return plan{}, &api.Error{Code: api.CodeConflict, Message: fmt.Sprintf("the settings are of version %d, not %d: somebody has changed them", s.Version, r.Version), Hint: "look at them again"}
	}
	if len(s.Problems) > 0 {
		return plan{}, &api.Error{Code: api.CodeConflict, Message: "the group has settings that this version does not understand: " + s.Problems[0].String(), Hint: "ask a node of the newer version"}
	}
	if err := unchanged(s.Settings.Objects(), r.Seen); err != nil {
		return plan{}, err
	}
	want, err := understood(r.Settings)
	if err != nil {
		return plan{}, err
	}
	all, p := changesTo(s.Settings.Objects(), want, r.Prune)
	if p.next, err = configs.FromObjects(all); err == nil {
		err = p.next.Named(p.next.Validate())
	}
	if err == nil {
		err = k.check(p.next)
	}
	if err != nil {
		return plan{}, usage(err)
	}
	taken := k.cfg.Taken()
	for _, c := range p.changes {
		if err := k.early(c); err != nil {
			return plan{}, err
		}
		if node, ok := taken[c.Kind+" "+c.Name]; ok && c.Change == api.SettingAdded {
			return plan{}, &api.Error{Code: api.CodeConflict, Message: fmt.Sprintf("%s %s is in the file of node %s: a name is in one place", c.Kind, c.Name, node), Hint: "take it out of the files of the nodes and restart them, or choose another name"}
		}
		if c.Change == api.SettingRemoved {
			if err := k.cfg.Busy(ctx, c.Kind, c.Name); err != nil {
				return plan{}, err
			}
		}
	}
	return p, nil
}

// early refuses what a program of the version before, which may be at work beside this one, would not understand.
func (k *Keeper) early(c api.SettingChange) error {
	need := configs.Object{Kind: c.Kind, Spec: c.After}.Protocol()
	if c.Change == api.SettingRemoved || k.cfg.Writes == nil || need <= k.cfg.Writes() {
		return nil
	}
	return &api.Error{Code: api.CodeConflict, Message: fmt.Sprintf("%s %s: it came with protocol %d, and the group writes %d still", c.Kind, c.Name, need, k.cfg.Writes()),
		Hint: "when all nodes have the new version: fencepost upgrade finalize"}
}

func (k *Keeper) check(s configs.Settings) error {
	if k.cfg.Check == nil {
		return nil
	}
	if err := k.cfg.Check(s); err != nil {
		return &api.Error{Code: api.CodeUsage, Message: err.Error()}
	}
	return nil
}

// understood are settings in the form in which they are compared: strictly read, without defaults.
func understood(list []api.Setting) ([]configs.Object, error) {
	var objects []configs.Object
	for _, s := range list {
		objects = append(objects, configs.Object(s))
	}
	read, err := configs.FromObjects(objects)
	if err != nil {
		return nil, usage(err)
	}
	seen := map[string]bool{}
	out := read.Objects()
	for _, o := range out {
		if seen[oneKey(o)] {
			return nil, &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("%s %s is there twice", o.Kind, o.Name)}
		}
		seen[oneKey(o)] = true
	}
	for _, s := range list {
		if s.Name != "" && !seen[oneKey(configs.Object{Kind: s.Kind, Name: s.Name})] {
			return nil, &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("%s %s: its spec has another name", s.Kind, s.Name), Hint: "a setting is not renamed: remove it, and add one of the new name"}
		}
	}
	return out, nil
}

func usage(err error) error {
	var invalid *configs.Error
	if !errors.As(err, &invalid) {
		return err
	}
	var lines []string
	for _, p := range invalid.Problems {
		lines = append(lines, p.String())
	}
	return &api.Error{Code: api.CodeUsage, Message: strings.Join(lines, "; ")}
}
