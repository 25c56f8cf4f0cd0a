package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Paths of accounts.
const (
	PathSession = Base + "/session" // who asks; log-in and log-out
	PathUsers   = Base + "/users"
	PathTokens  = Base + "/tokens"
)

// Secret is a text that is sent once and never shown: whatever prints it prints three stars.
type Secret string

// Format keeps the text out of whatever it is printed into.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "***") }

// User is somebody who may log in.
type User struct {
	Name        string     `json:"name"`
	Role        Role       `json:"role"`
	Disabled    bool       `json:"disabled"`
	Created     time.Time  `json:"created"`
	By          string     `json:"by"`      // who added them
	Changed     time.Time  `json:"changed"` // of the password, the role or the state
	LockedUntil *time.Time `json:"locked_until,omitempty"`
	LastLogIn   *time.Time `json:"last_log_in,omitempty"`
	Sessions    int        `json:"sessions"` // open ones
}

// AddUser makes a user.
type AddUser struct {
	Name     string `json:"name"`
	Role     Role   `json:"role"`
	Password Secret `json:"password"`
}

// SetUser changes a user; what is left out stays. Each of them ends the user's sessions, but for Unlock.
type SetUser struct {
	Role     *Role   `json:"role,omitempty"`
	Disabled *bool   `json:"disabled,omitempty"`
	Password *Secret `json:"password,omitempty"`
	Unlock   bool    `json:"unlock,omitempty"` // wrong passwords are forgotten
	LogOut   bool    `json:"log_out,omitempty"`
}

// Token lets a program act for a user.
type Token struct {
	ID       string     `json:"id"`
	Name     string     `json:"name"`
	User     string     `json:"user"`
	Role     Role       `json:"role"` // it may no more than this, nor than the user
	Created  time.Time  `json:"created"`
	By       string     `json:"by"`
	Expires  time.Time  `json:"expires"`
	LastUsed *time.Time `json:"last_used,omitempty"` // to the hour
	Approves bool       `json:"approves,omitempty"`  // it can be the second person of an approval
}

// AddToken makes a token.
type AddToken struct {
	Name      string `json:"name"`           // what it is for
	User      string `json:"user,omitempty"` // whose it is; empty: who asks
	Role      Role   `json:"role"`
	ExpiresMS int64  `json:"expires_ms,omitempty"` // from now; 0: 90 days; at most ten years
	// Approves lets it be the second person of an approval. Only its own user can ask for that, logged in or with a token that
	// approves: a program that acts for them does not, unless they say so.
	Approves bool `json:"approves,omitempty"`
}

// NewToken is a token with its secret, which is shown this once.
type NewToken struct {
	Token
	Secret string `json:"secret"`
}

// LogIn asks for a session.
type LogIn struct {
	Name     string `json:"name"`
	Password Secret `json:"password"`
}

// Session says who asks.
type Session struct {
	Name string `json:"name"`
	Role Role   `json:"role"`
	Via  string `json:"via"` // socket, session, token
	// FormToken has to be sent back as the header X-Form-Token with whatever changes something, when Via is session.
	FormToken string     `json:"form_token,omitempty"`
	Ends      *time.Time `json:"ends,omitempty"` // of a session or a token, at the latest
}

// HeaderFormToken carries a session's form token.
const HeaderFormToken = "X-Form-Token"

// HeaderLookingOn marks a request that nobody has made by hand, such as a page that keeps itself up to date: it does not count
// as use of the session, which ends when nobody does anything.
const HeaderLookingOn = "Fencepost-Looking-On"

// Ended is the answer to what has no other.
type Ended struct {
	Name string `json:"name"` // of what there is no more
}

// UserPath is the path of one user.
func UserPath(name string) string { return PathUsers + "/" + url.PathEscape(name) }

// TokenPath is the path of one token.
func TokenPath(id string) string { return PathTokens + "/" + url.PathEscape(id) }

// Session asks who the daemon takes us for.
func (c *Client) Session(ctx context.Context) (Session, error) {
	return Get[Session](ctx, c, PathSession)
}

// Users lists the users.
func (c *Client) Users(ctx context.Context) ([]User, error) { return Get[[]User](ctx, c, PathUsers) }

// AddUser makes a user.
func (c *Client) AddUser(ctx context.Context, u AddUser) (User, error) {
	return post[User](ctx, c, PathUsers, u)
}

// SetUser changes a user.
func (c *Client) SetUser(ctx context.Context, name string, s SetUser) (User, error) {
	return post[User](ctx, c, UserPath(name), s)
}

// RemoveUser removes a user with their sessions and tokens.
func (c *Client) RemoveUser(ctx context.Context, name string) (Ended, error) {
	return call[Ended](ctx, c, http.MethodDelete, UserPath(name))
}

// Tokens lists the tokens of who asks, or as an admin all.
func (c *Client) Tokens(ctx context.Context) ([]Token, error) {
	return Get[[]Token](ctx, c, PathTokens)
}

// AddToken makes a token; its secret is shown this once.
func (c *Client) AddToken(ctx context.Context, t AddToken) (NewToken, error) {
	return post[NewToken](ctx, c, PathTokens, t)
}

// RemoveToken ends a token.
func (c *Client) RemoveToken(ctx context.Context, id string) (Ended, error) {
	return call[Ended](ctx, c, http.MethodDelete, TokenPath(id))
}
