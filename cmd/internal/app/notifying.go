package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

// newNotifier makes the notifier, with the receivers of the node's file; those of the group's settings come when they are known.
func (a *App) newNotifier() (*notify.Notifier, error) {
	n := a.cfg.Notify
	receivers, err := receiversOf(n)
	if err != nil {
		return nil, err
	}
	c := notify.Config{
		Rules:     notify.Rules{Group: a.cfg.Group, Severity: api.Severity(n.Severity), After: n.After, Repeat: n.Repeat},
		Receivers: receivers, Store: notifyStore{a.group}, May: (&teller{group: a.group}).may, Now: a.clock.Now, Every: n.Heartbeat.Every, Logger: a.log,
		Look: func(ctx context.Context) (api.Overview, []api.Recovery) {
			return a.seen.Get(ctx), people{a}.recoveries()
		},
	}
	if n.Heartbeat.URL.Given() {
		c.Heartbeat = n.Heartbeat.URL.Resolve
	}
	return notify.New(c), nil
}

// renewReceivers has those be told whom the outfit names. What cannot be understood of the settings is told of, and the others
// are told all the same.
func (a *App) renewReceivers(fit *outfit) {
	all, _ := receiversOf(configs.Notify{Mails: fit.cfg.Notify.Mails}) // only hooks have what may not be understood
	for _, h := range fit.cfg.Notify.Hooks {
		some, err := receiversOf(configs.Notify{Hooks: []configs.Hook{h}})
		if err != nil {
			fit.problem("hook "+h.Name, err)
		}
		all = append(all, some...)
	}
	a.notifier.Renew(all)
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
	value, err := json.Marshal(st)
	if err != nil {
		return fmt.Errorf("encode what people were told: %w", err)
	}
	txn := gms.Txn{Conditions: []gms.Condition{gms.VersionIs(notifyState(), version)}, Puts: []gms.Put{{Key: notifyState(), Value: value}}}
	for _, p := range add {
		value, err := json.Marshal(p)
		if err != nil {
			return fmt.Errorf("encode a message: %w", err)
		}
		txn.Puts = append(txn.Puts, gms.Put{Key: outKey(p.ID()), Value: value})
	}
	_, err = s.g.Cache().Commit(ctx, txn)
	if errors.Is(err, gms.ErrConflict) {
		return notify.ErrChanged
	}
	return err
}

func (s notifyStore) Update(ctx context.Context, p notify.Pending) error {
	value, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	_, err = s.g.Cache().Commit(ctx, gms.Txn{Puts: []gms.Put{{Key: outKey(p.ID()), Value: value}}})
	return err
}

func (s notifyStore) Remove(ctx context.Context, id string) error {
	_, err := s.g.Cache().Commit(ctx, gms.Txn{Deletes: []gms.Key{outKey(id)}})
	if errors.Is(err, gms.ErrNotFound) {
		return nil
	}
	return err
}

// notifyProblems are alarms about receivers that do not take what they are told: others may still.
func (a *App) notifyProblems() (list []api.Alarm) {
	problems := a.notifier.Problems()
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		list = append(list, api.Alarm{
			Kind: "notify", About: name + " by " + a.cfg.Node, Severity: api.Warning, Local: true, Text: "notifications do not reach " + name + ": " + problems[name],
			Hint: "fencepost notify test " + strings.TrimSuffix(name, "heartbeat"), Cause: problems[name],
		})
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
