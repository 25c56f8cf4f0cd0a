package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// resource is what the host apps write to: a thing outside the group that checks tokens. Of each item it takes a write only
// with a token not below the newest that it has seen, and remembers everything.
type resource struct {
	mu    sync.Mutex
	items map[string]*guarded
	said  told
}

// guarded is one item of the resource.
type guarded struct {
	newest uint64
	owner  map[uint64]string // token → the run that wrote with it
	shut   map[string]bool   // runs that were shut out
}

// told is what the resource has to tell.
type told struct {
	Accepted, Refused, ShutOuts int
	Wrong                       []string // writes that were taken and should not have been
}

// write is a request to the resource. With ShutOut it is a recoverer's: Run may write no more, and nobody below Token.
type write struct {
	Item, Run string
	Token     uint64
	ShutOut   bool
}

// take decides about a write.
func (r *resource) take(w write) (ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.items[w.Item]
	if g == nil {
		g = &guarded{owner: map[uint64]string{}, shut: map[string]bool{}}
		r.items[w.Item] = g
	}
	if w.Token < g.newest {
		r.said.Refused++
		return false
	}
	g.newest = w.Token
	if w.ShutOut {
		g.shut[w.Run] = true
		r.said.ShutOuts++
		return true
	}
	r.said.Accepted++
	owner, known := g.owner[w.Token]
	switch {
	case g.shut[w.Run]:
		r.wrong("%s: run %s wrote with token %d after it was shut out", w.Item, w.Run, w.Token)
	case known && owner != w.Run:
		r.wrong("%s: token %d is of run %s, and run %s wrote with it", w.Item, w.Token, owner, w.Run)
	}
	g.owner[w.Token] = w.Run
	return true
}

func (r *resource) wrong(format string, args ...any) {
	r.said.Wrong = append(r.said.Wrong, fmt.Sprintf(format, args...))
}

func (r *resource) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodGet {
		r.mu.Lock()
		defer r.mu.Unlock()
		_ = json.NewEncoder(w).Encode(r.said)
		return
	}
	var asked write
	if err := json.NewDecoder(req.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !r.take(asked) {
		w.WriteHeader(http.StatusConflict)
	}
}

// resourceMain is the program of the resource: it serves on an address until it is killed.
func resourceMain(address string) int {
	l, err := net.Listen("tcp", address)
	if err == nil {
		err = (&http.Server{Handler: &resource{items: map[string]*guarded{}}, ReadHeaderTimeout: time.Minute}).Serve(l)
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// errOld: the resource has seen a newer token.
var errOld = errors.New("the resource has seen a newer token")

// far is the resource as its clients see it.
type far struct {
	url    string
	client *http.Client
}

func (f far) send(ctx context.Context, w write) error {
	body, err := json.Marshal(w)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	res, err := f.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusConflict:
		return errOld
	}
	return fmt.Errorf("the resource answers %s", res.Status)
}

func (f far) told(ctx context.Context) (t told, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url, nil)
	if err != nil {
		return t, err
	}
	res, err := f.client.Do(req)
	if err != nil {
		return t, err
	}
	defer res.Body.Close()
	return t, json.NewDecoder(res.Body).Decode(&t)
}

// The resource refuses what is old, and says of itself when it took what it should not have: a group that gives tokens out
// twice, or to the dead.
func TestTheResourceKnowsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		writes         []write
		refused, wrong int
	}{
		"one after the other": {[]write{{Item: "a", Run: "1", Token: 5}, {Item: "a", Run: "2", Token: 7}}, 0, 0},
		"a late one":          {[]write{{Item: "a", Run: "2", Token: 7}, {Item: "a", Run: "1", Token: 5}, {Item: "b", Run: "1", Token: 5}}, 1, 0},
		"shut out":            {[]write{{Item: "a", Run: "1", Token: 5}, {Item: "a", Run: "1", Token: 6, ShutOut: true}, {Item: "a", Run: "1", Token: 5}}, 1, 0},
		"a token twice":       {[]write{{Item: "a", Run: "1", Token: 5}, {Item: "a", Run: "2", Token: 5}}, 0, 1},
		"to the dead":         {[]write{{Item: "a", Run: "1", Token: 6, ShutOut: true}, {Item: "a", Run: "1", Token: 8}}, 0, 1},
	} {
		r := &resource{items: map[string]*guarded{}}
		for _, w := range c.writes {
			r.take(w)
		}
		if r.said.Refused != c.refused || len(r.said.Wrong) != c.wrong {
			t.Errorf("%s: %+v, items %v", name, r.said, slices.Sorted(maps.Keys(r.items)))
		}
	}
}
