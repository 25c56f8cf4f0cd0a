package accounts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/kept"
)

// cheap makes passwords cost nothing.
var cheap = Cost{Memory: 8, Passes: 1, Threads: 1}

const right = "correct horse battery"

// bench is Accounts with a clock of the test's own.
type bench struct {
	*Accounts
	store *kept.Memory
	at    time.Time
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{store: &kept.Memory{}, at: time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)}
	b.Accounts = New(Config{Store: b.store, Now: func() time.Time { return b.at }, Cost: cheap})
	return b
}

func (b *bench) add(t testing.TB, name string, role api.Role) {
	t.Helper()
	if _, err := b.AddUser(t.Context(), NewUser{name, role, right}, "local:root"); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) logIn(t testing.TB, name string) Session {
	t.Helper()
	s, err := b.LogIn(t.Context(), name, right, "192.0.2.7")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// refused wants err to be an *api.Error of that code.
func refused(t testing.TB, what string, err error, code api.Code) {
	t.Helper()
	var e *api.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("%s: error %v, want code %s", what, err, code)
	}
}

func TestNobodyAtFirst(t *testing.T) {
	b := newBench(t)
	if users, err := b.Users(t.Context()); err != nil || len(users) != 0 {
		t.Fatalf("%v, %v", users, err)
	}
	for _, name := range []string{"admin", "root", "fencepost", ""} {
		_, err := b.LogIn(t.Context(), name, name, "")
		refused(t, "log in as "+name, err, api.CodeUnauthorized)
	}
}

func TestUsers(t *testing.T) {
	b := newBench(t)
	b.add(t, "ann", api.RoleOperator)
	ctx := t.Context()
	for what, u := range map[string]NewUser{
		"no name":         {"", api.RoleViewer, right},
		"name of others":  {"Ann O'Hara", api.RoleViewer, right},
		"no role":         {"bob", "", right},
		"unknown role":    {"bob", "root", right},
		"short":           {"bob", api.RoleViewer, "qwerty"},
		"the name itself": {"bob", api.RoleViewer, "bobbobbobbob1234"},
		"one letter":      {"bob", api.RoleViewer, "aaaaaaaaaaaaaaaa"},
		"long":            {"bob", api.RoleViewer, strings.Repeat("abcdefgh", 200)},
		"not UTF-8":       {"bob", api.RoleViewer, "abcdefghijkl\xff"},
	} {
		_, err := b.AddUser(ctx, u, "x")
		refused(t, what, err, api.CodeUsage)
	}
	_, err := b.AddUser(ctx, NewUser{"ann", api.RoleAdmin, right}, "x")
	refused(t, "twice", err, api.CodeConflict)
	users, err := b.Users(ctx)
	if err != nil || len(users) != 1 || users[0].Name != "ann" || users[0].Role != api.RoleOperator || users[0].By != "local:root" {
		t.Fatalf("%+v, %v", users, err)
	}
	_, err = b.SetUser(ctx, "bob", api.SetUser{Unlock: true})
	refused(t, "change nobody", err, api.CodeNotFound)
	_, err = b.SetUser(ctx, "ann", api.SetUser{})
	refused(t, "change nothing", err, api.CodeUsage)
	refused(t, "remove nobody", b.RemoveUser(ctx, "bob"), api.CodeNotFound)
}

// TestKeptSecrets: what lies in the group's state is worth nothing to who reads it, and what is shown holds none of it.
func TestKeptSecrets(t *testing.T) {
	b := newBench(t)
	b.add(t, "ann", api.RoleAdmin)
	s := b.logIn(t, "ann")
	secret, _, err := b.AddToken(t.Context(), NewToken{Name: "ci", User: "ann", Role: api.RoleViewer}, "ann")
	if err != nil {
		t.Fatal(err)
	}
	_, cookie, _ := split(s.Cookie)
	records, err := b.store.List(t.Context(), "")
	if err != nil || len(records) != 3 {
		t.Fatal(len(records), err)
	}
	users, _ := b.Users(t.Context())
	tokens, _ := b.Tokens(t.Context(), "")
	shown, err := json.Marshal([]any{users, tokens})
	if err != nil {
		t.Fatal(err)
	}
	for _, hidden := range []string{right, cookie, secret, secret[len(TokenPrefix)+13:], FormToken(s.Cookie)} {
		for _, r := range records {
			if strings.Contains(r.Key+string(r.Value), hidden) {
				t.Errorf("%s holds %s", r.Key, hidden)
			}
		}
		if strings.Contains(string(shown), hidden) {
			t.Errorf("%s is shown", hidden)
		}
	}
	if strings.Contains(string(shown), "argon2") {
		t.Error("a hash is shown")
	}
	if text := fmt.Sprintf("%v %+v %#v", api.Secret(right), api.AddUser{Password: right}, api.LogIn{Password: right}); strings.Contains(text, right) {
		t.Errorf("a password is printed: %s", text)
	}
}

func TestSessions(t *testing.T) {
	b := newBench(t)
	b.add(t, "ann", api.RoleOperator)
	ctx := t.Context()
	s := b.logIn(t, "ann")
	actor, err := b.OfSession(ctx, s.Cookie)
	if err != nil || actor.Name != "ann" || actor.Role != api.RoleOperator || actor.Via != ViaSession || actor.Address != "192.0.2.7" {
		t.Fatalf("%+v, %v", actor, err)
	}
	for _, cookie := range []string{"", ".", "ann", "ann.", "bob" + s.Cookie[3:], s.Cookie[:len(s.Cookie)-1] + "!", s.Cookie + "x", strings.Repeat("a", 1000)} {
		_, err := b.OfSession(ctx, cookie)
		refused(t, "cookie "+cookie, err, api.CodeUnauthorized)
	}
	for range 30 { // used every 20 minutes: it goes on, and ends all the same
		b.at = b.at.Add(20 * time.Minute)
		_, err = b.OfSession(ctx, s.Cookie)
		if age := b.at.Sub(time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)); (err == nil) != (age < 12*time.Hour) && age < 12*time.Hour {
			t.Fatalf("after %s: %v", age, err)
		}
	}
	b.at = b.at.Add(3 * time.Hour)
	_, err = b.OfSession(ctx, s.Cookie)
	refused(t, "after 13 hours", err, api.CodeUnauthorized)

	idle := b.logIn(t, "ann")
	b.at = b.at.Add(31 * time.Minute)
	_, err = b.OfSession(ctx, idle.Cookie)
	refused(t, "after 31 idle minutes", err, api.CodeUnauthorized)

	out := b.logIn(t, "ann")
	if err := errors.Join(b.LogOut(ctx, out.Cookie), b.LogOut(ctx, out.Cookie), b.LogOut(ctx, "nonsense")); err != nil {
		t.Fatal(err)
	}
	_, err = b.OfSession(ctx, out.Cookie)
	refused(t, "after the log-out", err, api.CodeUnauthorized)
}

// TestLookingOnIsNoUse: a page that keeps itself up to date shows what it may while the session stands, and does not keep it
// open.
func TestLookingOnIsNoUse(t *testing.T) {
	b := newBench(t)
	b.add(t, "ann", api.RoleViewer)
	s := b.logIn(t, "ann")
	for range 5 {
		b.at = b.at.Add(5 * time.Minute)
		if actor, err := b.LookOn(t.Context(), s.Cookie); err != nil || actor.Name != "ann" {
			t.Fatalf("%+v, %v", actor, err)
		}
	}
	b.at = b.at.Add(6 * time.Minute)
	_, err := b.LookOn(t.Context(), s.Cookie)
	refused(t, "looking on after 31 minutes without use", err, api.CodeUnauthorized)
	_, err = b.OfSession(t.Context(), s.Cookie)
	refused(t, "use after 31 minutes without", err, api.CodeUnauthorized)
}

// TestSessionsEndWithTheUser: whatever changes who somebody is ends what was given out before.
func TestSessionsEndWithTheUser(t *testing.T) {
	viewer, yes, next := api.RoleViewer, true, api.Secret("another long password")
	for what, change := range map[string]func(*bench) error{
		"role": func(b *bench) error { _, err := b.SetUser(t.Context(), "ann", api.SetUser{Role: &viewer}); return err },
		"password": func(b *bench) error {
			_, err := b.SetUser(t.Context(), "ann", api.SetUser{Password: &next})
			return err
		},
		"disabled": func(b *bench) error { _, err := b.SetUser(t.Context(), "ann", api.SetUser{Disabled: &yes}); return err },
		"log out":  func(b *bench) error { _, err := b.SetUser(t.Context(), "ann", api.SetUser{LogOut: true}); return err },
		"removed":  func(b *bench) error { return b.RemoveUser(t.Context(), "ann") },
		"removed and made anew": func(b *bench) error {
			err := b.RemoveUser(t.Context(), "ann")
			b.add(t, "ann", api.RoleAdmin)
			return err
		},
	} {
		b := newBench(t)
		b.add(t, "ann", api.RoleOperator)
		s := b.logIn(t, "ann")
		if err := change(b); err != nil {
			t.Fatal(what, err)
		}
		_, err := b.OfSession(t.Context(), s.Cookie)
		refused(t, what, err, api.CodeUnauthorized)
	}
}

// TestMostSessions: a user has twenty, and the one that was not used longest goes; ended ones go at the next log-in.
func TestMostSessions(t *testing.T) {
	b := newBench(t)
	b.add(t, "ann", api.RoleViewer)
	first := b.logIn(t, "ann")
	for range mostSessions {
		b.at = b.at.Add(time.Second)
		b.logIn(t, "ann")
	}
	_, err := b.OfSession(t.Context(), first.Cookie)
	refused(t, "the first of 21", err, api.CodeUnauthorized)
	users, err := b.Users(t.Context())
	if err != nil || users[0].Sessions != mostSessions {
		t.Fatalf("%+v, %v", users, err)
	}
	b.at = b.at.Add(13 * time.Hour)
	b.logIn(t, "ann")
	if left, err := b.store.List(t.Context(), "session/"); err != nil || len(left) != 1 {
		t.Errorf("%d sessions are kept, %v", len(left), err)
	}
}

// TestLockOut: five wrong passwords lock for a minute, then twice as long; the right one does not help while it lasts, and
// nobody can keep somebody locked by trying on.
func TestLockOut(t *testing.T) {
	b := newBench(t)
	b.add(t, "ann", api.RoleViewer)
	ctx := t.Context()
	wrong := func() {
		t.Helper()
		_, err := b.LogIn(ctx, "ann", "wrong but long enough", "")
		refused(t, "a wrong password", err, api.CodeUnauthorized)
	}
	for range freeFailures - 1 {
		wrong()
	}
	b.logIn(t, "ann") // forgets them
	for range freeFailures {
		wrong()
	}
	_, err := b.LogIn(ctx, "ann", right, "")
	refused(t, "locked", err, api.CodeUnauthorized)
	users, _ := b.Users(ctx)
	if users[0].LockedUntil == nil || !users[0].LockedUntil.Equal(b.at.Add(time.Minute)) {
		t.Fatalf("locked until %v", users[0].LockedUntil)
	}
	for range 100 {
		wrong() // not counted while it is locked
	}
	b.at = b.at.Add(time.Minute)
	wrong()
	if users, _ = b.Users(ctx); !users[0].LockedUntil.Equal(b.at.Add(2 * time.Minute)) {
		t.Fatalf("locked until %v", users[0].LockedUntil)
	}
	if _, err := b.SetUser(ctx, "ann", api.SetUser{Unlock: true}); err != nil {
		t.Fatal(err)
	}
	b.logIn(t, "ann")
}

func TestLockFor(t *testing.T) {
	for failures, want := range map[int]time.Duration{0: 0, 4: 0, 5: time.Minute, 6: 2 * time.Minute, 10: 32 * time.Minute, 11: time.Hour, 1 << 20: time.Hour} {
		if got := lockFor(failures); got != want {
			t.Errorf("%d failures lock for %s, want %s", failures, got, want)
		}
	}
}

func TestTokens(t *testing.T) {
	b := newBench(t)
	b.add(t, "ann", api.RoleOperator)
	ctx := t.Context()
	secret, made, err := b.AddToken(ctx, NewToken{Name: "ci", User: "ann", Role: api.RoleOperator}, "ann")
	if err != nil || made.Expires.Sub(b.at) != 90*24*time.Hour || !strings.HasPrefix(secret, TokenPrefix+made.ID) {
		t.Fatalf("%+v, %v", made, err)
	}
	is := func(want api.Role) {
		t.Helper()
		actor, err := b.OfToken(ctx, secret)
		if err != nil || actor.Name != "ann" || actor.Role != want || actor.Via != ViaToken || actor.Token != made.ID || !actor.Ends.Equal(made.Expires) {
			t.Fatalf("%+v, %v", actor, err)
		}
	}
	is(api.RoleOperator)
	viewer, admin := api.RoleViewer, api.RoleAdmin
	if _, err := b.SetUser(ctx, "ann", api.SetUser{Role: &viewer}); err != nil {
		t.Fatal(err)
	}
	is(api.RoleViewer) // it may no more than its user
	_, _, err = b.AddToken(ctx, NewToken{Name: "more", User: "ann", Role: api.RoleOperator}, "ann")
	refused(t, "a token above its user", err, api.CodeForbidden)
	if _, err := b.SetUser(ctx, "ann", api.SetUser{Role: &admin}); err != nil {
		t.Fatal(err)
	}
	is(api.RoleOperator) // nor than itself
	for _, x := range []string{"", secret[:len(secret)-1], secret + "x", secret[len(TokenPrefix):], TokenPrefix + made.ID + "_", TokenPrefix + "000000000000_" + secret[18:], strings.Repeat("_", 300)} {
		_, err := b.OfToken(ctx, x)
		refused(t, "token "+x, err, api.CodeUnauthorized)
	}
	_, _, err = b.AddToken(ctx, NewToken{Name: "x", User: "bob", Role: api.RoleViewer}, "")
	refused(t, "of nobody", err, api.CodeNotFound)
	for _, d := range []time.Duration{time.Second, longestToken + 1, -1} {
		_, _, err = b.AddToken(ctx, NewToken{Name: "x", User: "ann", Role: api.RoleViewer, For: d}, "")
		refused(t, d.String(), err, api.CodeUsage)
	}
	b.at = made.Expires
	_, err = b.OfToken(ctx, secret)
	refused(t, "expired", err, api.CodeUnauthorized)
	if list, err := b.Tokens(ctx, ""); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

// TestTokensEnd with their user, and by hand.
func TestTokensEnd(t *testing.T) {
	b := newBench(t)
	ctx, yes, no := t.Context(), true, false
	b.add(t, "ann", api.RoleOperator)
	add := func() string {
		t.Helper()
		secret, _, err := b.AddToken(ctx, NewToken{Name: "ci", User: "ann", Role: api.RoleViewer}, "ann")
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	ended := func(what, secret string) {
		t.Helper()
		_, err := b.OfToken(ctx, secret)
		refused(t, what, err, api.CodeUnauthorized)
	}
	first := add()
	if _, err := b.SetUser(ctx, "ann", api.SetUser{Disabled: &yes}); err != nil {
		t.Fatal(err)
	}
	ended("disabled", first)
	if _, err := b.SetUser(ctx, "ann", api.SetUser{Disabled: &no}); err != nil {
		t.Fatal(err)
	}
	actor, err := b.OfToken(ctx, first)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.RemoveToken(ctx, actor.Token); err != nil {
		t.Fatal(err)
	}
	ended("removed", first)
	second := add()
	if err := b.RemoveUser(ctx, "ann"); err != nil {
		t.Fatal(err)
	}
	ended("of a user who is gone", second)
	b.add(t, "ann", api.RoleAdmin)
	ended("of a user of the same name", second)
}

// TestWithoutQuorum: who is logged in stays so and looks, nobody else comes in, and what is noted holds nobody up.
func TestWithoutQuorum(t *testing.T) {
	b := newBench(t)
	b.add(t, "ann", api.RoleViewer)
	s := b.logIn(t, "ann")
	broken := errors.New("no quorum")
	b.store.Fail(broken)
	b.at = b.at.Add(20 * time.Minute)
	if _, err := b.OfSession(t.Context(), s.Cookie); err != nil {
		t.Errorf("a session of before: %v", err)
	}
	if _, err := b.LogIn(t.Context(), "ann", right, ""); !errors.Is(err, broken) {
		t.Errorf("a log-in: %v", err)
	}
}

// TestRehash: a hash of less work than today's is replaced at the next log-in.
func TestRehash(t *testing.T) {
	b := newBench(t)
	b.add(t, "ann", api.RoleViewer)
	b.cfg.Cost = Cost{Memory: 16, Passes: 2, Threads: 1}
	b.logIn(t, "ann")
	u, _, err := b.user(context.Background(), "ann")
	if err != nil || !strings.Contains(u.Hash, "m=16,t=2,p=1") {
		t.Fatalf("%s, %v", u.Hash, err)
	}
	b.logIn(t, "ann")
}

// TestHashes: what is read of a kept hash is bounded, and never panics.
func TestHashes(t *testing.T) {
	good := hashPassword(right, cheap)
	if ok, c, err := checkHash(right, good); !ok || c != cheap || err != nil {
		t.Fatal(ok, c, err)
	}
	for _, bad := range []string{"", right, "$argon2i" + good[9:], strings.Replace(good, "m=8", "m=4294967295", 1), strings.Replace(good, "m=8", "m=0", 1),
		strings.Replace(good, "t=1", "t=99", 1), strings.Replace(good, "p=1", "p=1,x", 1), good[:len(good)-40], good + "!"} {
		if ok, _, err := checkHash(right, bad); ok || err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		password, other := rapid.String().Draw(t, "password"), rapid.String().Draw(t, "other")
		if ok, _, err := checkHash(other, hashPassword(password, cheap)); err != nil || ok != (password == other) {
			t.Fatalf("%q for %q: %t, %v", other, password, ok, err)
		}
		_, _, _ = checkHash(other, "$argon2id$v=19$"+rapid.StringMatching(`m=[0-9]{1,3},t=[0-9],p=[0-9]\$[A-Za-z0-9]{0,30}\$[A-Za-z0-9]{0,60}`).Draw(t, "hash"))
	})
}

func TestLimiter(t *testing.T) {
	var l Limiter
	now := time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)
	for i := range attemptsAtOnce {
		if wait := l.Take("192.0.2.7", now); wait != 0 {
			t.Fatalf("attempt %d waits %s", i, wait)
		}
	}
	if wait := l.Take("192.0.2.7", now); wait != attemptEvery {
		t.Fatalf("one too many waits %s", wait)
	}
	if l.Take("::ffff:192.0.2.7", now) == 0 {
		t.Error("the same address in another form is another one")
	}
	if l.Take("192.0.2.8", now) != 0 {
		t.Error("another address waits")
	}
	now = now.Add(attemptEvery)
	if l.Take("192.0.2.7", now) != 0 || l.Take("192.0.2.7", now) == 0 {
		t.Error("after six seconds there is not just one more")
	}
	for range attemptsAtOnce {
		l.Take("2001:db8::1", now)
	}
	if l.Take("2001:db8::2:1", now) == 0 || l.Take("2001:db8:0:1::1", now) != 0 {
		t.Error("a customer's addresses are not one")
	}
	for i := range 2 * mostRemembered {
		l.Take(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), now)
	}
	if len(l.addresses) > mostRemembered {
		t.Errorf("%d addresses are remembered", len(l.addresses))
	}
	if l.Take("203.0.113.1", now) == 0 {
		t.Error("all together are not limited")
	}
}
