package dropbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/dropbox/dropboxtest"
)

const (
	smallObject = 1000
	largeObject = MinPart + 1000 // two parts
)

// steps are the requests of a Put.
var steps = []string{"oauth2/token", "files/get_metadata", "files/list_folder", "upload_session/start", "upload_session/append_v2", "upload_session/finish"}

// A fault that passes is not noticed, whatever step it hits; the object is there once, whole.
func TestPassingFaults(t *testing.T) {
	for name, fault := range passing() {
		for _, step := range steps {
			t.Run(name+" "+step, func(t *testing.T) {
				b := newBox(t, dropboxtest.Options{})
				f := fault()
				if strings.HasPrefix(f.String(), "files/") && step == "oauth2/token" {
					return // the faults of access tokens
				}
				f.On(step).Times(2)
				b.Inject(f)
				s := b.open(t)
				info, err := s.Put(t.Context(), "b/17/data", bytes.NewReader(content(largeObject)), storage.Condition{})
				if err != nil || info.Size != largeObject || info.Version == "" {
					t.Fatalf("%+v, %v under\n%v", info, err, b)
				}
				if f.Hits() == 0 {
					t.Errorf("did not strike: %v", b)
				}
				if got := read(t, s, "b/17/data"); !bytes.Equal(got, content(largeObject)) {
					t.Errorf("%d bytes came back", len(got))
				}
				if got := b.Files(); !slices.Equal(got, []string{"/fence post/x/b+/17+/data"}) {
					t.Errorf("there are %q", got)
				}
				_, err = s.Put(t.Context(), "b/17/data", strings.NewReader("x"), storage.Condition{})
				wantErr(t, "another put", err, storage.ErrExists)
			})
		}
	}
}

// A fault that stays is an error that may pass, and nothing is there.
func TestLastingFaults(t *testing.T) {
	for _, step := range steps {
		b := newBox(t, dropboxtest.Options{})
		b.Inject(dropboxtest.Reset().On(step))
		_, err := b.open(t).Put(t.Context(), "o", bytes.NewReader(content(largeObject)), storage.Condition{})
		if err == nil || storage.Final(err) {
			t.Errorf("%s: %v, want an error that may pass", step, err)
		}
		if n := b.Count("files/" + step); step != "oauth2/token" && !strings.HasPrefix(step, "files/") && n != attempts {
			t.Errorf("%s: %d attempts, want %d", step, n, attempts)
		}
		if got := b.Files(); len(got) > 0 {
			t.Errorf("%s: there are %q", step, got)
		}
	}
}

// When the answer to the finish is lost for good, the object itself says that it was made; a replacement too.
func TestLostAnswers(t *testing.T) {
	b := newBox(t, dropboxtest.Options{})
	b.Inject(dropboxtest.Lose().On("upload_session/finish").Nth(1), dropboxtest.Unsure().On("upload_session/finish").Nth(3))
	s := b.open(t)
	info := store(t, s, "o", content(smallObject))
	if n := b.Count("files/upload_session/finish"); n != 2 {
		t.Errorf("%d finishes, want 2", n)
	}
	next, err := s.Put(t.Context(), "o", strings.NewReader("next"), storage.Condition{Version: info.Version})
	if err != nil || next.Version == info.Version {
		t.Errorf("replace: %+v, %v", next, err)
	}
	_, err = s.Put(t.Context(), "o", strings.NewReader("late"), storage.Condition{Version: info.Version})
	wantErr(t, "replace of the old version", err, storage.ErrStale)
}

// A finish that was not carried out, and of which that is not known, while another makes the object: it is the other's.
func TestAnotherIsFaster(t *testing.T) {
	for _, same := range []bool{true, false} {
		b := newBox(t, dropboxtest.Options{})
		ours, theirs := b.open(t), b.open(t)
		gate := dropboxtest.NewGate()
		b.Inject(dropboxtest.Late(gate).On("upload_session/finish").Nth(1), dropboxtest.Stall(gate).On("upload_session/finish").Nth(2))
		done := make(chan error, 1)
		go func() {
			_, err := ours.Put(context.Background(), "b/1/manifest", strings.NewReader("manifest"), storage.Condition{})
			done <- err
		}()
		<-gate.Reached()
		other := "tombstone"
		if same {
			other = "manifest"
		}
		b.Add("/Fence post/x/b+/1+/manifest", []byte(other))
		gate.Release() // now the late one comes too, and then the repeated one
		wantErr(t, "put", <-done, storage.ErrExists)
		if got := read(t, theirs, "b/1/manifest"); string(got) != other {
			t.Errorf("there is %q", got)
		}
	}
}

// A finish that comes late, when its repetition has made the object, does nothing.
func TestALateFinish(t *testing.T) {
	b := newBox(t, dropboxtest.Options{})
	gate := dropboxtest.NewGate()
	b.Inject(dropboxtest.Late(gate).On("upload_session/finish").Nth(1))
	s := b.open(t)
	info := store(t, s, "o", content(smallObject))
	if err := s.Delete(t.Context(), "o"); err != nil {
		t.Fatal(err)
	}
	gate.Release()
	if _, err := s.Stat(t.Context(), "o"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("it is back: %v", err)
	}
	if again := store(t, s, "o", content(smallObject)); again.Version == info.Version {
		t.Error("a version came twice")
	}
}

// The service asks to wait: all that use the account do, as long as it says, and nothing is lost.
func TestRateLimits(t *testing.T) {
	b := newBox(t, dropboxtest.Options{})
	a, w := b.account(t)
	s := opened(t, Options{Account: a, PartSize: MinPart})
	b.Inject(dropboxtest.RateLimit(300 * time.Second).On("upload_session/append_v2").Nth(2))
	store(t, s, "o", content(2*MinPart+1000))
	if got := w.longest(); got < 299*time.Second || got > 315*time.Second {
		t.Errorf("waited for %s", got)
	}
	if a.paused() < 290*time.Second {
		t.Errorf("others wait for %s", a.paused())
	}
	if got := read(t, s, "o"); !bytes.Equal(got, content(2*MinPart+1000)) {
		t.Errorf("%d bytes came back", len(got))
	}
	for _, tags := range []string{"too_many_write_operations", "path/too_many_write_operations"} {
		b.Inject(dropboxtest.Tagged(409, tags).On("upload_session/finish").Times(3))
		store(t, s, "p/"+strings.ReplaceAll(tags, "/", "-"), content(1))
	}
	b.Inject(dropboxtest.RateLimit(time.Hour).On("upload_session/finish"))
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("cancelled while waiting")
	a.wait = func(wait context.Context, d time.Duration) error {
		if d > 30*time.Minute {
			cancel(stop)
		}
		return ended(wait)
	}
	_, err := s.Put(ctx, "q", strings.NewReader("x"), storage.Condition{})
	wantErr(t, "put", err, stop)
}

func TestTokens(t *testing.T) {
	b := newBox(t, dropboxtest.Options{TokenCalls: 2})
	s := b.open(t)
	store(t, s, "o", content(largeObject))
	if n := b.Count("oauth2/token"); n < 3 {
		t.Errorf("%d tokens were asked for", n)
	}
	b.Revoke()
	_, err := s.Stat(t.Context(), "o")
	wantErr(t, "revoked", err, storage.ErrPermanent, "authorize it again")

	b = newBox(t, dropboxtest.Options{Scopes: "files.metadata.read files.content.read"})
	_, err = b.open(t).Put(t.Context(), "o", strings.NewReader("x"), storage.Condition{})
	wantErr(t, "scope", err, storage.ErrPermanent, "the scope files.content.write")

	b = newBox(t, dropboxtest.Options{AppKey: "another"})
	_, err = b.open(t).Stat(t.Context(), "o")
	wantErr(t, "app", err, storage.ErrPermanent, "app key")
}

// A token that cannot be renewed before its end is used until its end.
func TestRenewingInVain(t *testing.T) {
	b := newBox(t, dropboxtest.Options{})
	a, _ := b.account(t)
	s := opened(t, Options{Account: a})
	store(t, s, "o", content(1))
	b.Inject(dropboxtest.Refuse(500, "down").On("oauth2/token"))
	token := <-a.access
	token.renew = time.Now()
	a.access <- token
	if _, err := s.Stat(t.Context(), "o"); err != nil {
		t.Error(err)
	}
	token = <-a.access
	token.expires = time.Now()
	a.access <- token
	if _, err := s.Stat(t.Context(), "o"); err == nil {
		t.Error("an expired token was used")
	}
}

func TestAFullAccount(t *testing.T) {
	b := newBox(t, dropboxtest.Options{Quota: MinPart + 1})
	s := b.open(t)
	s.spaceEvery = MinPart
	_, err := s.Put(t.Context(), "large", &endless{}, storage.Condition{})
	wantErr(t, "noticed on the way", err, storage.ErrPermanent, "the account is full")
	if n := b.Count("files/upload_session/finish"); n > 0 {
		t.Errorf("%d finishes", n)
	}
	store(t, s, "fits", content(MinPart))
	_, err = s.Put(t.Context(), "small", strings.NewReader("xx"), storage.Condition{})
	wantErr(t, "noticed at the end", err, storage.ErrPermanent, "the account is full")
}

// endless is a reader without an end, of 1 MiB at a time.
type endless struct{ done int64 }

func (e *endless) Read(p []byte) (int, error) { e.done += int64(len(p)); return len(p), nil }

func TestForgottenSessions(t *testing.T) {
	for _, step := range []string{"upload_session/append_v2", "upload_session/finish"} {
		b := newBox(t, dropboxtest.Options{})
		b.Inject(dropboxtest.Do(b.ExpireSessions).On(step).Nth(1))
		s := b.open(t)
		_, err := s.Put(t.Context(), "o", bytes.NewReader(content(largeObject)), storage.Condition{})
		wantErr(t, step, err, errSessionGone)
		if storage.Final(err) {
			t.Errorf("%v: trying again helps", err)
		}
		store(t, s, "o", content(largeObject))
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Sources that fail, are cancelled or stall at any place: no object, no finish, and no bytes that somebody pays for.
func TestNothingIsFinishedOfASourceThatFails(t *testing.T) {
	boom := errors.New("boom")
	for _, after := range []int{0, 1, MinPart - 1, MinPart, MinPart + 1, 3 * MinPart} {
		b := newBox(t, dropboxtest.Options{})
		s := b.open(t)
		_, err := s.Put(t.Context(), "o", io.MultiReader(bytes.NewReader(content(after)), iotest.ErrReader(boom)), storage.Condition{})
		wantErr(t, "fails", err, boom)

		ctx, cancel := context.WithCancelCause(t.Context())
		stall := readerFunc(func([]byte) (int, error) { cancel(boom); <-ctx.Done(); return 0, ctx.Err() })
		_, err = s.Put(ctx, "o", io.MultiReader(bytes.NewReader(content(after)), stall), storage.Condition{})
		wantErr(t, "stalls", err, boom)
		if n := b.Count("files/upload_session/finish"); n > 0 || len(b.Files()) > 0 {
			t.Errorf("after %d bytes: %d finishes, files %q", after, n, b.Files())
		}
	}
}
