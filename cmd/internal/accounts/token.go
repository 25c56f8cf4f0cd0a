package accounts

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/kept"
)

// token is what is kept of one.
type token struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	User     string    `json:"user"`
	Role     api.Role  `json:"role"`
	Digest   string    `json:"digest"`
	Created  time.Time `json:"created"`
	By       string    `json:"by"`
	Expires  time.Time `json:"expires"`
	LastUsed time.Time `json:"last_used,omitzero"`
	Approves bool      `json:"approves,omitempty"`

	record kept.Record
}

// TokenPrefix begins every token, so that one that lies around is known for what it is.
const TokenPrefix = "fp1_"

// Lives of tokens.
const (
	defaultToken = 90 * 24 * time.Hour
	longestToken = 10 * 365 * 24 * time.Hour
	usedWithin   = time.Hour // to which LastUsed is exact
	mostTokens   = 1000
)

// NewToken is a token to be made.
type NewToken struct {
	Name string
	User string
	Role api.Role
	For  time.Duration // 0: 90 days
	// Approves lets it be the second person of an approval. It is the caller's to see that its user makes it, and nobody else.
	Approves bool
}

// AddToken makes a token and gives its secret, which is kept nowhere.
func (a *Accounts) AddToken(ctx context.Context, n NewToken, by string) (secret string, shown api.Token, err error) {
	if err := checkName("name", n.Name); err != nil {
		return "", shown, err
	}
	if err := checkRole(n.Role); err != nil {
		return "", shown, err
	}
	if n.For == 0 {
		n.For = defaultToken
	}
	if n.For < time.Minute || n.For > longestToken {
		return "", shown, &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("expires: %s from now: want a minute to ten years", n.For)}
	}
	u, owner, err := a.user(ctx, n.User)
	if err != nil {
		return "", shown, err
	}
	if !u.Role.May(n.Role) && !(n.Role == api.RoleOperator && a.cfg.Bound(n.User)) {
		return "", shown, &api.Error{Code: api.CodeForbidden, Message: fmt.Sprintf("role: user %s is %s, their token cannot be %s", u.Name, u.Role, n.Role)}
	}
	all, err := a.tokens(ctx)
	if err != nil {
		return "", shown, err
	}
	now := a.cfg.Now().UTC()
	t := token{ID: strings.ToLower(digest(drawn(16))[:12]), Name: n.Name, User: n.User, Role: n.Role, Created: now, By: by, Expires: now.Add(n.For), Approves: n.Approves}
	secret = TokenPrefix + t.ID + "_" + drawn(32)
	t.Digest = digest(secret)
	changes := []kept.Change{kept.Put(tokenKey(t.ID), t, 0), kept.Again(owner)}
	living := 0
	for _, old := range all {
		if now.After(old.Expires) {
			changes = append(changes, kept.Delete(old.record))
			continue
		}
		living++
	}
	if living >= mostTokens {
		return "", shown, &api.Error{Code: api.CodeConflict, Message: fmt.Sprintf("there are %d tokens", living), Hint: "remove some that nobody uses: fencepost token ls"}
	}
	err = a.cfg.Store.Commit(ctx, changes...)
	if errors.Is(err, kept.ErrConflict) {
		return "", shown, &api.Error{Code: api.CodeBusy, Message: "accounts are being changed by somebody else", Hint: "try again"}
	}
	return secret, t.shown(), err
}

func (t token) shown() api.Token {
	out := api.Token{ID: t.ID, Name: t.Name, User: t.User, Role: t.Role, Created: t.Created, By: t.By, Expires: t.Expires, Approves: t.Approves}
	if !t.LastUsed.IsZero() {
		out.LastUsed = &t.LastUsed
	}
	return out
}

func (a *Accounts) tokens(ctx context.Context) ([]token, error) {
	records, err := a.cfg.Store.List(ctx, tokenKey(""))
	if err != nil {
		return nil, err
	}
	var list []token
	for _, r := range records {
		t, err := tokenOf(r)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

func tokenOf(r kept.Record) (token, error) {
	t := token{record: r}
	if err := json.Unmarshal(r.Value, &t); err != nil {
		return t, fmt.Errorf("read what is kept of a token: %w", err)
	}
	return t, nil
}

// Tokens are those of a user that have not expired; "" = of all. The newest come first.
func (a *Accounts) Tokens(ctx context.Context, name string) ([]api.Token, error) {
	all, err := a.tokens(ctx)
	if err != nil {
		return nil, err
	}
	list, now := []api.Token{}, a.cfg.Now()
	for _, t := range all {
		if now.Before(t.Expires) && (name == "" || t.User == name) {
			list = append(list, t.shown())
		}
	}
	slices.SortFunc(list, func(x, y api.Token) int { return y.Created.Compare(x.Created) })
	return list, nil
}

// Token is one of them.
func (a *Accounts) Token(ctx context.Context, id string) (api.Token, error) {
	r, err := a.cfg.Store.Get(ctx, tokenKey(id))
	if err == nil && r.Version == 0 {
		err = &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("there is no token %q", id), Hint: "fencepost token ls lists them"}
	}
	if err != nil {
		return api.Token{}, err
	}
	t, err := tokenOf(r)
	return t.shown(), err
}

// RemoveToken ends a token.
func (a *Accounts) RemoveToken(ctx context.Context, id string) error {
	return kept.Update(ctx, a.cfg.Store, tokenKey(id), func(r kept.Record) ([]kept.Change, error) {
		if r.Version == 0 {
			return nil, nil
		}
		return []kept.Change{kept.Delete(r)}, nil
	})
}

// OfToken is who a token stands for. It reads memory but for tokens that this node has not heard of, and
// once an hour, when it writes down that the token is used.
func (a *Accounts) OfToken(ctx context.Context, secret string) (Actor, error) {
	refused := &api.Error{Code: api.CodeUnauthorized, Message: "the token is none, or has expired, or its user is gone or disabled", Hint: "fencepost token create makes one"}
	rest, ok := strings.CutPrefix(secret, TokenPrefix)
	id, _, both := strings.Cut(rest, "_")
	if !ok || !both || len(id) != 12 || len(secret) > 128 {
		return Actor{}, refused
	}
	r := a.cfg.Store.Local(tokenKey(id))
	if r.Version == 0 {
		var err error
		if r, err = a.cfg.Store.Get(ctx, tokenKey(id)); err != nil {
			return Actor{}, err
		}
	}
	if r.Version == 0 {
		return Actor{}, refused
	}
	t, err := tokenOf(r)
	if err != nil {
		return Actor{}, err
	}
	now := a.cfg.Now().UTC()
	owner := a.cfg.Store.Local(userKey(t.User))
	if !hmac.Equal([]byte(t.Digest), []byte(digest(secret))) || !now.Before(t.Expires) || owner.Version == 0 {
		return Actor{}, refused
	}
	u, err := userOf(owner)
	if err != nil {
		return Actor{}, err
	}
	if u.Disabled {
		return Actor{}, refused
	}
	if now.Sub(t.LastUsed) >= usedWithin {
		t.LastUsed = now
		a.note(ctx, kept.Put(r.Key, t, r.Version), now)
	}
	return Actor{Name: u.Name, Role: api.Least(u.Role, t.Role), Most: t.Role, Via: ViaToken, Token: t.ID, Ends: t.Expires, Approves: t.Approves}, nil
}
