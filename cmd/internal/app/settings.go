package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/settings"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/ledger"
)

// newSettings makes the keeper of the group's settings.
func (a *App) newSettings() *settings.Keeper {
	return settings.New(settings.Config{Store: groupStore{a}, Now: a.clock.Now, Taken: a.inFiles, Busy: a.busyWith, Check: checkSettings, Writes: a.group.Protocol})
}

// checkSettings looks at what only the packages that use them understand: lines of schedules, rules of retention.
func checkSettings(s configs.Settings) error {
	var samples []configs.Found
	for _, sv := range s.Servers {
		samples = append(samples, configs.Found{Server: sv.Name, DBName: sampleOf(sv)})
	}
	all := s.Expand(samples)
	c := configs.Config{Databases: all.Databases, Storages: all.Storages, Schedules: all.Schedules, Retention: all.Retention}
	if _, err := jobsOf(c); err != nil {
		return err
	}
	if _, err := policiesOf(c); err != nil {
		return err
	}
	for _, h := range s.Hooks {
		if _, err := receiversOf(configs.Notify{Hooks: []configs.Hook{h}}); err != nil {
			return fmt.Errorf("hook %s: %w", h.Name, err)
		}
	}
	return nil
}

// sampleOf is the name of a database that a server would want: its first pattern, which fits itself.
func sampleOf(s configs.Server) string {
	for _, p := range s.Include {
		if name := strings.NewReplacer("*", "x", "?", "x").Replace(p); s.Wants(name) {
			return name
		}
	}
	return "x"
}

// namesInFile are what the file of this node names, as settings would.
func (a *App) namesInFile() (list []string) {
	for _, d := range a.cfg.Databases {
		list = append(list, "database "+d.Name)
	}
	for _, s := range a.cfg.Storages {
		list = append(list, "storage "+s.Name)
	}
	for _, s := range a.cfg.Schedules {
		list = append(list, "schedule "+s.Name)
	}
	for _, r := range a.cfg.Retention {
		list = append(list, "retention "+r.Database)
	}
	told := a.fileNotify()
	for _, h := range told.Hooks {
		list = append(list, "hook "+h.Name)
	}
	for _, m := range told.Mails {
		list = append(list, "mail "+m.Name)
	}
	if told.OwnRule() {
		list = append(list, "rule "+configs.DefaultRule)
	}
	if told.Heartbeat.URL.Given() {
		list = append(list, "heartbeat "+configs.FileBeat)
	}
	slices.Sort(list)
	return list
}

// inFiles are what the files of nodes name, each with one of the nodes.
func (a *App) inFiles() map[string]string {
	out := map[string]string{}
	for _, m := range a.group.Members() {
		e, err := a.group.Cache().GetLocal(abilitiesKey(m.Node))
		if err != nil {
			continue // it carries nothing out, or has just come
		}
		for _, name := range namesOf(e) {
			out[name] = m.Node
		}
	}
	for _, name := range a.namesInFile() {
		out[name] = a.cfg.Node
	}
	return out
}

func namesOf(e gms.Entry) []string {
	var r abilitiesRecord
	if r.read(e.Value) != nil {
		return nil
	}
	return r.File
}

// busyWith says which task stands against the removal of a setting: a recovery has to find what it was at work with.
func (a *App) busyWith(ctx context.Context, kind, name string) error {
	w, err := (jobs{a}).now()
	if err != nil {
		return err
	}
	active, err := w.ledger.Tasks(ctx, ledger.TaskFilter{Active: true})
	if err != nil {
		return err
	}
	for _, t := range active {
		if usesSetting(t, kind, name) {
			return &api.Error{Code: api.CodeBusy, Message: fmt.Sprintf("%s %s is needed by task %s (%s, %s)", kind, name, t.ID, t.Type, t.State), Hint: "wait until it has ended, or: fencepost cancel " + t.ID}
		}
	}
	return nil
}

// usesSetting tells whether a task cannot be carried out, or recovered, without something.
func usesSetting(t ledger.Task, kind, name string) bool {
	switch kind {
	case "storage":
		return slices.Contains(t.Storages, name)
	case "database":
		return t.Database == name || t.Scratch == name
	case "server":
		return strings.HasPrefix(t.Database, name+".")
	}
	return false
}

// groupSettings are the settings for people.
type groupSettings struct{ a *App }

// Settings implements admin.Settings.
func (s groupSettings) Settings(ctx context.Context) (api.Settings, error) {
	return s.a.settings.Settings(ctx)
}

// PlanSettings implements admin.Settings.
func (s groupSettings) PlanSettings(ctx context.Context, r api.ApplySettings) (api.AppliedSettings, error) {
	return s.a.settings.Plan(ctx, r)
}

// ApplySettings implements admin.Settings.
func (s groupSettings) ApplySettings(ctx context.Context, r api.ApplySettings) (api.AppliedSettings, error) {
	return s.a.settings.Apply(ctx, r)
}

// RemoveSetting implements admin.Settings.
func (s groupSettings) RemoveSetting(ctx context.Context, kind, name string) (api.AppliedSettings, error) {
	return s.a.settings.Remove(ctx, kind, name)
}

// Servers implements admin.Settings.
func (s groupSettings) Servers(ctx context.Context) ([]api.Server, error) {
	state, err := s.a.settings.State(ctx)
	return state.Servers(), err
}

// LookAtServer implements admin.Settings.
func (s groupSettings) LookAtServer(ctx context.Context, name string) (api.Server, error) {
	all, err := s.Servers(ctx)
	if err != nil {
		return api.Server{}, err
	}
	i := slices.IndexFunc(all, func(x api.Server) bool { return x.Name == name })
	if i < 0 {
		return api.Server{}, &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("there is no server %q in the group's settings", name), Hint: "fencepost server ls"}
	}
	w, err := jobs(s).now()
	if err != nil {
		return api.Server{}, err
	}
	if w.discoverer == nil {
		return api.Server{}, &api.Error{Code: api.CodeUnavailable, Message: "this node asks no servers", Hint: "ask a core member"}
	}
	if err := w.discoverer.LookNow(ctx, name); err != nil {
		return api.Server{}, err
	}
	w.runners[pipeline.DiscoverComponent].Wake()
	return all[i], nil
}

// ForgetDatabase implements admin.Settings.
func (s groupSettings) ForgetDatabase(ctx context.Context, name string) error {
	return s.a.settings.Forget(ctx, name)
}

// Databases implements admin.Settings.
func (s groupSettings) Databases(context.Context) ([]api.Database, error) {
	fit := s.a.outfitNow()
	out := []api.Database{}
	for i, d := range fit.cfg.Databases {
		x := api.Database{
			Name: d.Name, From: api.FromSettings, DBName: d.DBName, Labels: append([]string{}, d.Labels...), Needs: append([]string{}, d.Needs...),
			MaxDumps: d.MaxDumps, RPOMS: d.RPO.Milliseconds(), Scratch: d.Scratch, Schedules: []string{},
		}
		if i < len(s.a.cfg.Databases) {
			x.From = api.FromFile
		}
		for _, f := range fit.state.Found {
			single := slices.ContainsFunc(fit.state.Settings.Databases, func(own configs.Database) bool { return own.Name == d.Name })
			if f.Name() != d.Name || x.From == api.FromFile || single {
				continue
			}
			x.From, x.Server = api.FromServer, f.Server
			if !f.Gone.IsZero() {
				x.Gone = &f.Gone
			}
		}
		for _, sc := range fit.cfg.Schedules {
			if sc.Database == d.Name {
				x.Schedules = append(x.Schedules, sc.Name)
			}
		}
		x.Retained = slices.ContainsFunc(fit.cfg.Retention, func(r configs.Retention) bool { return r.Database == d.Name })
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b api.Database) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}
