package accounts

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/kept"
)

// session is what is kept of one.
type session struct {
	User    string    `json:"user"`
	Digest  string    `json:"digest"` // of the cookie's secret
	Since   string    `json:"since"`  // of the user, when it began
	Address string    `json:"address"`
	Created time.Time `json:"created"`
	Seen    time.Time `json:"seen"` // of the last request, but for a quarter of Idle

	record kept.Record
}

// mostSessions is how many one user may have; the longest unused one goes.
const mostSessions = 20

// Session is what a log-in gives: Cookie is the secret.
type Session struct {
	Cookie string
	Actor  Actor
}

// refusal is the one answer to whoever is not let in.
func refusal() error {
	return &api.Error{Code: api.CodeUnauthorized, Message: "the name or the password is wrong, or the user is locked",
		Hint: "after five wrong passwords a user is locked, for a minute at first; an admin sees it with fencepost user ls, and unlocks"}
}

// LogIn opens a session. It takes as long whatever is wrong.
func (a *Accounts) LogIn(ctx context.Context, name, password, address string) (Session, error) {
	u, err := a.authenticate(ctx, name, password)
	if err != nil {
		return Session{}, err
	}
	secret, now := drawn(32), a.cfg.Now().UTC()
	s := session{User: u.Name, Digest: digest(secret), Since: u.Since, Address: address, Created: now, Seen: now}
	changes := []kept.Change{kept.Put(sessionKey(u.Name, s.Digest[:32]), s, 0)}
	old, err := a.sessions(ctx, u.Name)
	if err != nil {
		return Session{}, err
	}
	changes = append(changes, a.over(old, u, now)...)
	if err := a.cfg.Store.Commit(ctx, changes...); errors.Is(err, kept.ErrConflict) { // somebody removed one of the old ones
		err = a.cfg.Store.Commit(ctx, changes[0])
		if err != nil {
			return Session{}, err
		}
	} else if err != nil {
		return Session{}, err
	}
	return Session{Cookie: u.Name + "." + secret, Actor: a.actorOf(s, u)}, nil
}

// over are the sessions of a user that have ended, and those that are too many.
func (a *Accounts) over(list []session, u user, now time.Time) []kept.Change {
	slices.SortFunc(list, func(x, y session) int { return y.Seen.Compare(x.Seen) })
	var gone []kept.Change
	standing := 1 // the new one
	for _, s := range list {
		if a.stands(s, u, now) && standing < mostSessions {
			standing++
			continue
		}
		gone = append(gone, kept.Delete(s.record))
	}
	return gone
}

// authenticate finds the user whose password this is, and counts wrong ones.
func (a *Accounts) authenticate(ctx context.Context, name, password string) (user, error) {
	var u user
	if names.MatchString(name) && len(password) <= MaxPassword {
		found, _, err := a.user(ctx, name)
		var e *api.Error
		if err != nil && !(errors.As(err, &e) && e.Code == api.CodeNotFound) {
			return user{}, err
		}
		u = found
	}
	hash := u.Hash
	if hash == "" {
		hash = a.decoy
	}
	var right bool
	var cost Cost
	var broken error
	if err := a.hashed(ctx, func() { right, cost, broken = checkHash(password, hash) }); err != nil {
		return user{}, err
	}
	now := a.cfg.Now()
	switch {
	case u.Name == "":
		return user{}, refusal()
	case broken != nil:
		return user{}, fmt.Errorf("user %s: %w", u.Name, broken)
	case !u.mayLogIn(now): // not counted: who locks a user would keep them locked
		return user{}, refusal()
	case !right:
		_, err := a.edit(ctx, name, func(u *user, now time.Time) { *u = u.failed(now) })
		return user{}, errors.Join(refusal(), err)
	}
	better := ""
	if cost != a.cfg.Cost {
		var err error
		if better, err = a.hash(ctx, password); err != nil {
			return user{}, err
		}
	}
	old := u.Hash
	_, err := a.edit(ctx, name, func(now *user, at time.Time) {
		now.Failures, now.LockedUntil, now.LastLogIn = 0, time.Time{}, at
		if better != "" && now.Hash == old {
			now.Hash = better
		}
	})
	return u, err
}

// sessions are those kept of a user; "" = of all.
func (a *Accounts) sessions(ctx context.Context, name string) ([]session, error) {
	prefix := "session/"
	if name != "" {
		prefix = sessionKey(name, "")
	}
	records, err := a.cfg.Store.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var list []session
	for _, r := range records {
		s := session{record: r}
		if err := json.Unmarshal(r.Value, &s); err != nil {
			return nil, fmt.Errorf("read what is kept of a session: %w", err)
		}
		list = append(list, s)
	}
	return list, nil
}

// stands tells whether s is a session of u at now.
func (a *Accounts) stands(s session, u user, now time.Time) bool {
	return u.Name == s.User && !u.Disabled && s.Since == u.Since && now.Before(s.Created.Add(a.cfg.Max)) && now.Before(s.Seen.Add(a.cfg.Idle))
}

func (a *Accounts) actorOf(s session, u user) Actor {
	return Actor{Name: u.Name, Role: u.Role, Via: ViaSession, Session: s.Digest[:32], Address: s.Address, Ends: s.Created.Add(a.cfg.Max), Approves: true}
}

// errNoSession is the answer to a cookie that is worth nothing.
func errNoSession() error {
	return &api.Error{Code: api.CodeUnauthorized, Message: "there is no such session, or it has ended", Hint: "log in again"}
}

// split is a cookie's user and secret.
func split(cookie string) (name, secret string, ok bool) {
	i := strings.LastIndexByte(cookie, '.')
	if i < 0 || len(cookie) > 128 || !names.MatchString(cookie[:i]) || len(cookie[i+1:]) != 43 {
		return "", "", false
	}
	return cookie[:i], cookie[i+1:], true
}

// find is the session of a cookie, with its user, from what this node knows; where that is nothing, from what the group does.
func (a *Accounts) find(ctx context.Context, cookie string) (s session, u user, err error) {
	name, secret, ok := split(cookie)
	if !ok {
		return s, u, errNoSession()
	}
	sum := digest(secret)
	r, owner := a.cfg.Store.Local(sessionKey(name, sum[:32])), a.cfg.Store.Local(userKey(name))
	if r.Version == 0 || owner.Version == 0 { // this node may not know yet what another one has just written
		if r, err = a.cfg.Store.Get(ctx, sessionKey(name, sum[:32])); err != nil {
			return s, u, err
		}
		owner = a.cfg.Store.Local(userKey(name))
	}
	if r.Version == 0 || owner.Version == 0 {
		return s, u, errNoSession()
	}
	if err := json.Unmarshal(r.Value, &s); err != nil {
		return s, u, fmt.Errorf("read what is kept of a session: %w", err)
	}
	if u, err = userOf(owner); err != nil {
		return s, u, err
	}
	if !hmac.Equal([]byte(s.Digest), []byte(sum)) || !a.stands(s, u, a.cfg.Now()) {
		return s, u, errNoSession()
	}
	s.record = r
	return s, u, nil
}

// OfSession is who a cookie stands for. It reads memory but for sessions that this node has not heard of, and once in a
// quarter of Idle, when it writes down that the session is used.
func (a *Accounts) OfSession(ctx context.Context, cookie string) (Actor, error) {
	return a.ofSession(ctx, cookie, true)
}

// LookOn is OfSession for what nobody does by hand: it does not count as use, and so keeps no session open.
func (a *Accounts) LookOn(ctx context.Context, cookie string) (Actor, error) {
	return a.ofSession(ctx, cookie, false)
}

func (a *Accounts) ofSession(ctx context.Context, cookie string, used bool) (Actor, error) {
	s, u, err := a.find(ctx, cookie)
	if err != nil {
		return Actor{}, err
	}
	if now := a.cfg.Now().UTC(); used && now.Sub(s.Seen) >= a.cfg.Idle/4 {
		s.Seen = now
		a.note(ctx, kept.Put(s.record.Key, s, s.record.Version), now)
	}
	return a.actorOf(s, u), nil
}

// LogOut ends a session; one that has ended already is no error.
func (a *Accounts) LogOut(ctx context.Context, cookie string) error {
	s, _, err := a.find(ctx, cookie)
	var e *api.Error
	if errors.As(err, &e) && e.Code == api.CodeUnauthorized {
		return nil
	}
	if err != nil {
		return err
	}
	return kept.Update(ctx, a.cfg.Store, s.record.Key, func(r kept.Record) ([]kept.Change, error) {
		if r.Version == 0 {
			return nil, nil
		}
		return []kept.Change{kept.Delete(r)}, nil
	})
}

// FormToken is what a form of this session must bring. It tells nothing of the cookie.
func FormToken(cookie string) string {
	m := hmac.New(sha256.New, []byte(cookie))
	m.Write([]byte("fencepost form"))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// ValidFormToken tells whether a form token is the session's.
func ValidFormToken(cookie, token string) bool {
	return cookie != "" && hmac.Equal([]byte(FormToken(cookie)), []byte(token))
}
