package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/notify"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms"
)

// notifyComponent keeps in the state cache what people were told of: notify/state, and notify/out/<receiver>/<message> for
// what is to be delivered.
const notifyComponent = "notify"

// notifyLock is held by the run that tells. It is freed when that run is closed.
const notifyLock = "/fencepost/notify"

// newNotifier makes the notifier, which tells as the node's file says until the group's settings are known.
func (a *App) newNotifier() (*notify.Notifier, error) {
	receivers, err := receiversOf(a.fileNotify())
	if err != nil {
		return nil, err
	}
	return notify.New(notify.Config{
		Telling: a.telling(configs.Settings{}, receivers), Store: notifyStore{a.group}, May: (&teller{group: a.group}).may, Now: a.clock.Now, Logger: a.log,
		Look: func(ctx context.Context) (api.Overview, []api.Recovery) {
			return a.seen.Get(ctx), people{a}.recoveries()
		},
	}), nil
}

// fileNotify is the section of the node's file, as it was read last.
func (a *App) fileNotify() configs.Notify {
	if n := a.told.Load(); n != nil {
		return *n
	}
	return a.cfg.Notify
}

// takeNotify has the node tell as another section of its file says, within seconds. What of it cannot be understood changes
// nothing.
func (a *App) takeNotify(n configs.Notify) error {
	if _, err := receiversOf(n); err != nil {
		return err
	}
	if reflect.DeepEqual(n, a.fileNotify()) {
		return nil
	}
	a.told.Store(&n) // followSettings sees that
	return nil
}

// telling is who is told of what: by the node's file and the group's settings.
func (a *App) telling(s configs.Settings, receivers []notify.Receiver) notify.Telling {
	of, file := map[string]notify.Rule{}, a.fileNotify()
	rule := func(event string) notify.Rule {
		r := s.Rule(file, event)
		return notify.Rule{Severity: api.Severity(r.Severity), After: r.After, Repeat: r.Repeat, To: slices.Sorted(slices.Values(r.To))}
	}
	for _, event := range configs.Events() {
		of[event] = rule(event)
	}
	usual := rule(configs.DefaultRule)
	t := notify.Telling{Receivers: receivers, Rules: notify.Rules{Group: a.cfg.Group, Of: func(kind string) notify.Rule {
		if r, ok := of[kind]; ok {
			return r
		}
		return usual
	}}}
	for _, b := range s.Beats(file) {
		t.Beats = append(t.Beats, notify.Beat{Name: b.Name, URL: b.URL.Resolve, Every: b.Every})
	}
	return t
}

// renewTelling has those be told whom the outfit names, of what its settings say. What cannot be understood of them is told of,
// and the others are told all the same.
func (a *App) renewTelling(fit *outfit) {
	all, _ := receiversOf(configs.Notify{Mails: fit.cfg.Notify.Mails}) // only hooks have what may not be understood
	for _, h := range fit.cfg.Notify.Hooks {
		some, err := receiversOf(configs.Notify{Hooks: []configs.Hook{h}})
		if err != nil {
			fit.problem("hook "+h.Name, err)
		}
		all = append(all, some...)
	}
	a.notifier.Renew(a.telling(fit.state.Settings, all))
}

func receiversOf(n configs.Notify) (list []notify.Receiver, err error) {
	for i, h := range n.Hooks {
		c := notify.HookConfig{Name: h.Name, URL: h.URL.Resolve, Template: h.Template, Type: h.ContentType}
		if h.Secret.Given() {
			c.Secret = h.Secret.Resolve
		}
		r, err := notify.NewHook(c)
		if err != nil {
			return nil, fmt.Errorf("notify.hooks[%d]: %w", i, err)
		}
		list = append(list, r)
	}
	for _, m := range n.Mails {
		list = append(list, notify.NewMail(notify.MailConfig{
			Name: m.Name, Server: m.Server, Security: m.Security, From: m.From, To: m.To, User: m.User, Password: m.Password.Resolve,
		}))
	}
	return list, nil
}

// teller is this node's claim to be the one that tells: a lock of the group, held for as long as its run stands.
type teller struct {
	group *gms.Group
	run   string // that holds the lock; empty while none of this node does
}

// may is called by one goroutine.
func (t *teller) may(ctx context.Context) bool {
	if standing, _ := t.group.Standing(); standing != gms.Held {
		return false
	}
	_, run := t.group.Self()
	if t.run == run {
		return true
	}
	if _, err := t.group.TryLock(ctx, notifyLock); err != nil {
		return false // another tells, or nobody can be asked
	}
	t.run = run
	return true
}

// notifyStore is notify.Store on the state cache.
type notifyStore struct{ g *gms.Group }

func notifyState() gms.Key { return gms.Key{Component: notifyComponent, Key: "state"} }

const outPrefix = "out/"

func outKey(id string) gms.Key { return gms.Key{Component: notifyComponent, Key: outPrefix + id} }

func (s notifyStore) Load(ctx context.Context) (st notify.State, version uint64, out []notify.Pending, err error) {
	e, err := s.g.Cache().Get(ctx, notifyState())
	switch {
	case err == nil:
		if err := json.Unmarshal(e.Value, &st); err != nil {
			return st, 0, nil, fmt.Errorf("read what people were told: %w", err)
		}
	case !errors.Is(err, gms.ErrNotFound):
		return st, 0, nil, err
	}
	list, err := s.g.Cache().List(ctx, notifyComponent, "", outPrefix)
	if err != nil {
		return st, 0, nil, err
	}
	for _, e := range list {
		var p notify.Pending
		if err := json.Unmarshal(e.Value, &p); err != nil {
			return st, 0, nil, fmt.Errorf("read a message to be delivered: %w", err)
		}
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b notify.Pending) int { return a.Message.At.Compare(b.Message.At) })
	return st, e.Version, out, nil
}

func (s notifyStore) Save(ctx context.Context, st notify.State, version uint64, add []notify.Pending) error {
	txn := gms.Txn{Conditions: []gms.Condition{gms.VersionIs(notifyState(), version)}, Puts: []gms.Put{putOf(notifyState(), st)}}
	for _, p := range add {
		txn.Puts = append(txn.Puts, putOf(outKey(p.ID()), p))
	}
	_, err := s.g.Cache().Commit(ctx, txn)
	if errors.Is(err, gms.ErrConflict) {
		return notify.ErrChanged
	}
	return err
}

func (s notifyStore) Update(ctx context.Context, p notify.Pending) error {
	_, err := s.g.Cache().Commit(ctx, gms.Txn{Puts: []gms.Put{putOf(outKey(p.ID()), p)}})
	return err
}

func (s notifyStore) Remove(ctx context.Context, id string) error {
	_, err := s.g.Cache().Commit(ctx, gms.Txn{Deletes: []gms.Key{outKey(id)}})
	if errors.Is(err, gms.ErrNotFound) {
		return nil
	}
	return err
}

// notifyProblems are alarms about receivers that do not take what they are told, and watchers that are not reached: others may.
func (a *App) notifyProblems() (list []api.Alarm) {
	problems := a.notifier.Problems()
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		x := api.Alarm{
			Kind: "notify", About: name + " by " + a.cfg.Node, Severity: api.Warning, Local: true, Text: "notifications do not reach " + name + ": " + problems[name],
			Hint: "fencepost notify test " + name, Cause: problems[name],
		}
		if strings.HasPrefix(name, notify.BeatPrefix) {
			x.Text, x.Hint = "the outside watcher is not reached by "+name+": "+problems[name], "see heartbeats of the group's settings, and notify.heartbeat of the node's file"
		}
		list = append(list, x)
	}
	return list
}

// TestNotify implements admin.Notifier.
func (p people) TestNotify(ctx context.Context, r api.TestNotify) ([]api.NotifyResult, error) {
	if p.a.notifier.Nobody() {
		return nil, &api.Error{Code: api.CodeNotFound, Message: "there is nobody to tell", Hint: "add hooks or mails to the group's settings, or to the section notify of the configuration"}
	}
	got, err := p.a.notifier.Test(ctx, r.Receiver)
	if err != nil {
		return nil, err
	}
	list := []api.NotifyResult{}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		one := api.NotifyResult{Receiver: name}
		if got[name] != nil {
			one.Problem = got[name].Error()
		}
		list = append(list, one)
	}
	return list, nil
}
