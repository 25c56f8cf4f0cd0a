package settings

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/kept"
	"github.com/fencepost/fencepost/configs"
)

// discovered compares what was known of a server's databases with what it has now. put are new, vanished or back; drop are
// those that the server's patterns do not want any more. Pure.
func discovered(server configs.Server, was []configs.Found, names []string, now time.Time) (put, drop []configs.Found) {
	for _, name := range names {
		if !server.Wants(name) {
			continue
		}
		i := slices.IndexFunc(was, func(f configs.Found) bool { return f.DBName == name })
		switch {
		case i < 0:
			put = append(put, configs.Found{Server: server.Name, DBName: name, Since: now})
		case !was[i].Gone.IsZero():
			put = append(put, configs.Found{Server: server.Name, DBName: name, Since: was[i].Since})
		}
	}
	for _, f := range was {
		switch {
		case !server.Wants(f.DBName):
			drop = append(drop, f)
		case !slices.Contains(names, f.DBName) && f.Gone.IsZero():
			f.Gone = now
			put = append(put, f)
		}
	}
	return put, drop
}

// of are the databases that were found on a server.
func (s State) of(server string) (list []configs.Found) {
	for _, f := range s.Found {
		if f.Server == server {
			list = append(list, f)
		}
	}
	return list
}

// Note keeps what a server has answered, or why it did not: then its databases stay as they were. by is the node that asked.
// A server that is none of the settings any more is no error.
func (k *Keeper) Note(ctx context.Context, server, by string, names []string, problem error) error {
	return kept.Update(ctx, k.cfg.Store, FoundKey, func(mark kept.Record) ([]kept.Change, error) {
		s, err := k.State(ctx)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(s.Settings.Servers, func(x configs.Server) bool { return x.Name == server })
		if i < 0 {
			return nil, nil
		}
		now := k.cfg.Now().UTC().Truncate(time.Second)
		look := Look{At: now, By: by}
		var changes []kept.Change
		if problem != nil {
			look.Problem, look.Since = cut(problem.Error()), s.Looks[server].Since
			if look.Since.IsZero() {
				look.Since = now
			}
		} else {
			put, drop := discovered(s.Settings.Servers[i], s.of(server), names, now)
			for _, f := range put {
				changes = append(changes, kept.Put(foundKey(f), f, s.records[foundKey(f)].Version))
			}
			for _, f := range drop {
				changes = append(changes, kept.Delete(s.records[foundKey(f)]))
			}
		}
		key := lookPrefix + server
		changes = append(changes, kept.Put(key, look, s.records[key].Version))
		return append(changes, kept.Put(FoundKey, head{Format: format}, mark.Version)), nil
	})
}

const longestProblem = 500

func cut(text string) string {
	if len(text) > longestProblem {
		return text[:longestProblem] + "..."
	}
	return text
}

// Forget has a database that is gone from its server be unknown.
func (k *Keeper) Forget(ctx context.Context, name string) error {
	return kept.Update(ctx, k.cfg.Store, FoundKey, func(mark kept.Record) ([]kept.Change, error) {
		s, err := k.State(ctx)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(s.Found, func(f configs.Found) bool { return f.Name() == name })
		switch {
		case i < 0:
			return nil, &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("no database %q was found on a server", name), Hint: "fencepost database ls shows what there is"}
		case s.Found[i].Gone.IsZero():
			return nil, &api.Error{Code: api.CodeConflict, Message: fmt.Sprintf("database %s is on server %s", name, s.Found[i].Server), Hint: "to leave it out, name it under exclude of the server"}
		}
		return []kept.Change{kept.Delete(s.records[foundKey(s.Found[i])]), kept.Put(FoundKey, head{Format: format}, mark.Version)}, nil
	})
}

// Servers are those of s for people.
func (s State) Servers() []api.Server {
	out := []api.Server{}
	for _, sv := range s.Settings.Servers {
		x := api.Server{Name: sv.Name, Databases: []api.FoundDatabase{}}
		if l, ok := s.Looks[sv.Name]; ok {
			x.Looked, x.By, x.Problem = &l.At, l.By, l.Problem
			if !l.Since.IsZero() {
				x.Since = &l.Since
			}
		}
		for _, f := range s.of(sv.Name) {
			d := api.FoundDatabase{Name: f.Name(), DBName: f.DBName, Since: f.Since}
			if !f.Gone.IsZero() {
				d.Gone = &f.Gone
			}
			x.Databases = append(x.Databases, d)
		}
		out = append(out, x)
	}
	return out
}

// Kinds of alarms.
const (
	kindVanished = "vanished"
	kindServer   = "server"
)

// Alarms are what a person should look at, the same on every node.
func (s State) Alarms() (list []api.Alarm) {
	for _, x := range s.Servers() {
		for _, d := range x.Databases {
			if d.Gone != nil {
				list = append(list, api.Alarm{Kind: kindVanished, About: d.Name, Severity: api.Warning, Since: d.Gone,
					Text: fmt.Sprintf("database %s is not on server %s any more: its backups stay, and none is made", d.DBName, x.Name),
					Hint: "if that was meant: fencepost database forget " + d.Name + "; if not: fencepost restore " + d.Name})
			}
		}
		if x.Problem != "" {
			list = append(list, api.Alarm{Kind: kindServer, About: x.Name, Severity: api.Warning, Since: x.Since, Cause: x.Problem,
				Text: fmt.Sprintf("server %s did not say which databases it has, new ones are not seen: %s", x.Name, x.Problem), Hint: "look at its dsn and its rights; then: fencepost server look " + x.Name})
		}
	}
	return list
}
