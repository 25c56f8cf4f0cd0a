package accounts

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/kept"
)

// Config configures Accounts.
type Config struct {
	Store kept.Store       // required
	Now   func() time.Time // nil: time.Now
	Idle  time.Duration    // a session ends after this without a request; default 30 min
	Max   time.Duration    // a session ends after this; default 12 h
	Cost  Cost             // of new passwords; zero: DefaultCost
	// Bound tells whether a user is operator of some databases, whatever their role: then a token of theirs may be operator,
	// too, and is no more than they are. It must not block. nil: nobody is.
	Bound func(user string) bool
}

// Accounts are those who may do something. Safe for concurrent use.
type Accounts struct {
	cfg     Config
	hashing chan struct{} // so many passwords are hashed at once: each takes Cost.Memory
	decoy   string        // hash of a password that nobody has

	mu     sync.Mutex
	noteAt time.Time // when it may be written down again that something is used
}

// Writing down that a session or a token is used must hold up nobody while there is no quorum.
const (
	noteWithin = 2 * time.Second
	notePause  = time.Minute // after one that failed
)

// note writes down that something is used. It may fail: somebody else has just done so, or there is no quorum; a session
// then ends a little sooner.
func (a *Accounts) note(ctx context.Context, c kept.Change, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Before(a.noteAt) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, noteWithin)
	defer cancel()
	if err := a.cfg.Store.Commit(ctx, c); err != nil && !errors.Is(err, kept.ErrConflict) {
		a.noteAt = now.Add(notePause)
	}
}

// hashers bounds the memory that log-ins take.
const hashers = 2

// New makes Accounts over what is kept in cfg.Store.
func New(cfg Config) *Accounts {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Bound == nil {
		cfg.Bound = func(string) bool { return false }
	}
	if cfg.Idle == 0 {
		cfg.Idle = 30 * time.Minute
	}
	if cfg.Max == 0 {
		cfg.Max = 12 * time.Hour
	}
	if cfg.Cost == (Cost{}) {
		cfg.Cost = DefaultCost
	}
	salt := base64.RawStdEncoding.EncodeToString(make([]byte, saltSize))
	hash := base64.RawStdEncoding.EncodeToString(make([]byte, hashSize)) // of nothing that anybody knows
	c := cfg.Cost
	decoy := fmt.Sprintf("$argon2id$v=19$m=%d,t=%d,p=%d$%s$%s", c.Memory, c.Passes, c.Threads, salt, hash)
	return &Accounts{cfg: cfg, hashing: make(chan struct{}, hashers), decoy: decoy}
}

// Keys of what is kept.
func userKey(name string) string       { return "user/" + name }
func tokenKey(id string) string        { return "token/" + id }
func sessionKey(user, s string) string { return "session/" + user + "/" + s }

// hashed runs f when it is its turn.
func (a *Accounts) hashed(ctx context.Context, f func()) error {
	select {
	case a.hashing <- struct{}{}:
		defer func() { <-a.hashing }()
		f()
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (a *Accounts) hash(ctx context.Context, password string) (text string, err error) {
	err = a.hashed(ctx, func() { text = hashPassword(password, a.cfg.Cost) })
	return text, err
}

// NewUser is a user to be added.
type NewUser struct {
	Name     string
	Role     api.Role
	Password string
}

// AddUser makes a user; by is who wants it.
func (a *Accounts) AddUser(ctx context.Context, n NewUser, by string) (api.User, error) {
	if err := checkName("name", n.Name); err != nil {
		return api.User{}, err
	}
	if err := checkRole(n.Role); err != nil {
		return api.User{}, err
	}
	hash, err := a.newPassword(ctx, n.Name, n.Password)
	if err != nil {
		return api.User{}, err
	}
	now := a.cfg.Now().UTC()
	u := user{Name: n.Name, Role: n.Role, Hash: hash, Created: now, Changed: now, By: by, Since: drawn(8)}
	err = a.cfg.Store.Commit(ctx, kept.Put(userKey(n.Name), u, 0))
	if errors.Is(err, kept.ErrConflict) {
		return api.User{}, &api.Error{Code: api.CodeConflict, Message: "there is a user " + n.Name, Hint: "fencepost user set changes one"}
	}
	return u.shown(now), err
}

func (a *Accounts) newPassword(ctx context.Context, name, password string) (string, error) {
	if err := checkPassword(name, password); err != nil {
		return "", &api.Error{Code: api.CodeUsage, Message: "password: " + err.Error()}
	}
	return a.hash(ctx, password)
}

// Users are all of them, by name.
func (a *Accounts) Users(ctx context.Context) ([]api.User, error) {
	records, err := a.cfg.Store.List(ctx, "user/")
	if err != nil {
		return nil, err
	}
	sessions, err := a.sessions(ctx, "")
	if err != nil {
		return nil, err
	}
	now, list := a.cfg.Now(), []api.User{}
	for _, r := range records {
		u, err := userOf(r)
		if err != nil {
			return nil, err
		}
		shown := u.shown(now)
		for _, s := range sessions {
			if s.User == u.Name && a.stands(s, u, now) {
				shown.Sessions++
			}
		}
		list = append(list, shown)
	}
	return list, nil
}

// User is one of them as they are now.
func (a *Accounts) User(ctx context.Context, name string) (api.User, error) {
	u, _, err := a.user(ctx, name)
	return u.shown(a.cfg.Now()), err
}

func (a *Accounts) user(ctx context.Context, name string) (user, kept.Record, error) {
	r, err := a.cfg.Store.Get(ctx, userKey(name))
	if err != nil {
		return user{}, r, err
	}
	if r.Version == 0 {
		return user{}, r, &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("there is no user %q", name), Hint: "fencepost user ls lists them"}
	}
	u, err := userOf(r)
	return u, r, err
}

func userOf(r kept.Record) (u user, err error) {
	if err = json.Unmarshal(r.Value, &u); err != nil {
		err = fmt.Errorf("read what is kept of a user: %w", err)
	}
	return u, err
}

// SetUser changes a user. What changes who they are ends their sessions.
func (a *Accounts) SetUser(ctx context.Context, name string, s api.SetUser) (api.User, error) {
	if s == (api.SetUser{}) {
		return api.User{}, &api.Error{Code: api.CodeUsage, Message: "the request changes nothing: give role, disabled, password, unlock or log_out"}
	}
	if s.Role != nil {
		if err := checkRole(*s.Role); err != nil {
			return api.User{}, err
		}
	}
	var hash string
	if s.Password != nil {
		var err error
		if hash, err = a.newPassword(ctx, name, string(*s.Password)); err != nil {
			return api.User{}, err
		}
	}
	return a.edit(ctx, name, func(u *user, now time.Time) {
		if s.Role != nil {
			u.Role, u.Changed, u.Since = *s.Role, now, drawn(8)
		}
		if s.Disabled != nil {
			u.Disabled, u.Changed, u.Since = *s.Disabled, now, drawn(8)
		}
		if s.Password != nil {
			u.Hash, u.Changed, u.Since = hash, now, drawn(8)
		}
		if s.LogOut {
			u.Since = drawn(8)
		}
		if s.Unlock || s.Password != nil {
			u.Failures, u.LockedUntil = 0, time.Time{}
		}
	})
}

// edit changes a user as it is where the change is seen.
func (a *Accounts) edit(ctx context.Context, name string, change func(*user, time.Time)) (out api.User, err error) {
	err = kept.Update(ctx, a.cfg.Store, userKey(name), func(r kept.Record) ([]kept.Change, error) {
		if r.Version == 0 {
			_, _, err := a.user(ctx, name)
			return nil, err
		}
		u, err := userOf(r)
		if err != nil {
			return nil, err
		}
		now := a.cfg.Now().UTC()
		change(&u, now)
		out = u.shown(now)
		return []kept.Change{kept.Put(r.Key, u, r.Version)}, nil
	})
	return out, err
}

// RemoveUser removes a user. Their sessions and tokens are worth nothing from then on, and go.
func (a *Accounts) RemoveUser(ctx context.Context, name string) error {
	_, r, err := a.user(ctx, name)
	if err != nil {
		return err
	}
	gone := []kept.Change{kept.Delete(r)}
	sessions, err := a.cfg.Store.List(ctx, sessionKey(name, ""))
	if err != nil {
		return err
	}
	for _, s := range sessions {
		gone = append(gone, kept.Delete(s))
	}
	tokens, err := a.tokens(ctx)
	if err != nil {
		return err
	}
	for _, t := range tokens {
		if t.User == name {
			gone = append(gone, kept.Delete(t.record))
		}
	}
	err = a.cfg.Store.Commit(ctx, gone...)
	if errors.Is(err, kept.ErrConflict) {
		return &api.Error{Code: api.CodeBusy, Message: "user " + name + " is being changed by somebody else", Hint: "try again"}
	}
	return err
}

// drawn is a random text of so many bytes.
func drawn(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// digest is what is kept of a drawn secret.
func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
