package dropbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	sdk "github.com/dropbox/dropbox-sdk-go-unofficial/v6/dropbox"
	"github.com/dropbox/dropbox-sdk-go-unofficial/v6/dropbox/files"
	"github.com/dropbox/dropbox-sdk-go-unofficial/v6/dropbox/users"

	"github.com/fencepost/fencepost/pipeline/secret"
	"github.com/fencepost/fencepost/pipeline/storage/internal/stall"
)

// DefaultStall is what AccountOptions.Stall 0 stands for.
const DefaultStall = time.Minute

// AccountOptions say whose Dropbox it is. Zero values are defaults where one is named.
type AccountOptions struct {
	// AppKey is the key of the app that the account has authorized. Required.
	AppKey string
	// RefreshToken is what authorizing has given (Authorization.Finish). Required.
	RefreshToken secret.Secret
	// Endpoint is the URL of another server that speaks the same protocol. Empty: Dropbox.
	Endpoint string
	// Stall is how long a connection may be without a byte moving before it is given up. 0: DefaultStall.
	Stall time.Duration
	// Log gets what no call can report. nil: nothing is logged.
	Log *slog.Logger
}

// Account is an account with its access token and its limits. Storages in one account share one Account, since the
// service limits by account: when it asks one of them to wait, all do, and one write is made at a time. Made by
// NewAccount.
type Account struct {
	appKey   string
	refresh  secret.Secret
	endpoint string
	plain    *http.Client // for the token endpoint
	base     *http.Transport
	files    files.ContextClient
	users    users.ContextClient
	clean    secret.Redactor
	log      *slog.Logger
	wait     func(ctx context.Context, d time.Duration) error
	jitter   func() float64

	access chan access   // one slot: the access token, taken while it is being refreshed
	write  chan struct{} // one slot: who writes

	mu    sync.Mutex
	until time.Time // nothing is asked before
}

// NewAccount checks o. It does not talk to the server: whether the token is right shows at the first call.
func NewAccount(o AccountOptions) (*Account, error) {
	if o.Stall == 0 {
		o.Stall = DefaultStall
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	u, err := url.Parse(o.Endpoint)
	switch {
	case o.AppKey == "":
		return nil, errors.New("open dropbox account: app key is missing")
	case o.RefreshToken.IsEmpty():
		return nil, errors.New("open dropbox account: refresh token is missing")
	case o.Stall < 0:
		return nil, fmt.Errorf("open dropbox account: stall is %s, want more than 0", o.Stall)
	case o.Endpoint != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.User != nil):
		return nil, errors.New("open dropbox account: endpoint is no URL of a server: want https://host or http://host:port")
	}
	base := stall.Transport(o.Stall)
	a := &Account{
		appKey: o.AppKey, refresh: o.RefreshToken, endpoint: strings.TrimRight(o.Endpoint, "/"), plain: &http.Client{Transport: base}, base: base,
		clean: secret.NewRedactor(o.RefreshToken), log: o.Log, wait: wait, jitter: rand.Float64,
		access: make(chan access, 1), write: make(chan struct{}, 1),
	}
	a.access <- access{}
	config := sdk.Config{Client: &http.Client{Transport: &transport{account: a, next: base}}, URLGenerator: a.url}
	a.files, a.users = files.NewContext(config), users.NewContext(config)
	return a, nil
}

// Close closes the connections that are idle. Calls that run end by themselves.
func (a *Account) Close() error {
	a.base.CloseIdleConnections()
	return nil
}

// url is where a route is.
func (a *Account) url(host, namespace, route string) string {
	if a.endpoint != "" {
		return a.endpoint + "/2/" + namespace + "/" + route
	}
	return "https://" + host + ".dropboxapi.com/2/" + namespace + "/" + route
}

func (a *Account) tokenURL() string {
	if a.endpoint != "" {
		return a.endpoint + "/oauth2/token"
	}
	return "https://api.dropboxapi.com/oauth2/token"
}

// pause lets nobody ask before d has passed.
func (a *Account) pause(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t := time.Now().Add(d); t.After(a.until) {
		a.until = t
	}
}

// paused is how long nobody may ask from now on.
func (a *Account) paused() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Until(a.until)
}

// writing makes a write that no other one of this account overlaps: the service refuses those.
func (a *Account) writing(ctx context.Context, do func() error) error {
	select {
	case a.write <- struct{}{}:
		defer func() { <-a.write }()
		return do()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wait passes d, or returns the cause of ctx's end.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ended(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
