package dropbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/secret"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/dropbox/dropboxtest"
)

func TestADownloadGoesOnWhereItBrokeOff(t *testing.T) {
	b := newBox(t, dropboxtest.Options{})
	s := b.open(t)
	info := store(t, s, "o", content(largeObject))
	b.Inject(dropboxtest.Cut(1 << 20).On("files/download").Times(3))
	if got := read(t, s, "o"); !bytes.Equal(got, content(largeObject)) {
		t.Errorf("%d bytes came back", len(got))
	}
	if n := b.Count("files/download"); n != 4 {
		t.Errorf("%d requests, want 4", n)
	}
	b.Heal()
	b.Inject(dropboxtest.Cut(1 << 20).On("files/download").Nth(1))
	r, _, err := s.Get(t.Context(), "o")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "o", strings.NewReader("other"), storage.Condition{Version: info.Version}); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content(largeObject)) {
		t.Errorf("replaced meanwhile: %d bytes, %v", len(got), err)
	}
	_ = r.Close()

	b.Heal()
	b.Inject(dropboxtest.Cut(0).On("files/download")) // no byte ever comes
	if r, _, err = s.Get(t.Context(), "o"); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, r); err == nil || n > 0 {
		t.Errorf("%d bytes, %v", n, err)
	}
	_ = r.Close()
}

func TestADamagedDownloadIsNoticed(t *testing.T) {
	b := newBox(t, dropboxtest.Options{})
	s := b.open(t)
	store(t, s, "o", content(smallObject))
	r, info, err := s.Get(t.Context(), "o")
	if err != nil {
		t.Fatal(err)
	}
	d := r.(*download)
	body := d.body
	d.body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(strings.NewReader("X"), io.LimitReader(body, info.Size-1)), body}
	if _, err := io.ReadAll(r); err == nil || !strings.Contains(err.Error(), "content hash") {
		t.Errorf("read: %v", err)
	}
	_ = r.Close()
}

// Case does not count for the service, and what others have put there is none of ours.
func TestNamesInTheAccount(t *testing.T) {
	b := newBox(t, dropboxtest.Options{PageSize: 2})
	s := b.open(t)
	names := []string{"DB/x", "Db/x", "db/x", "thumbs.db", "~$x", "ä", "a\u0308"}
	for _, name := range names {
		store(t, s, name, []byte(name))
	}
	for _, path := range []string{"/Fence post/x/For eign", "/fence POST/x/foreign/y", "/elsewhere", "/Fence post/x/%4", "/Fence post/xy/a"} {
		b.Add(path, []byte("?"))
	}
	var listed []string
	for info, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, info.Name)
	}
	slices.Sort(names)
	if !slices.Equal(listed, names) {
		t.Errorf("listed %q, want %q", listed, names)
	}
	for _, name := range names {
		if got := read(t, s, name); string(got) != name {
			t.Errorf("%q holds %q", name, got)
		}
	}
}

func TestListingsBeginAnew(t *testing.T) {
	b := newBox(t, dropboxtest.Options{PageSize: 1})
	s := b.open(t)
	var want []string
	for i := range 10 {
		want = append(want, fmt.Sprintf("d%d/x", i))
		store(t, s, want[i], content(i))
	}
	b.Inject(dropboxtest.Tagged(409, "reset").On("list_folder/continue").Nth(5), dropboxtest.Tagged(409, "reset").On("list_folder/continue").Nth(9))
	var listed []string
	for info, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, info.Name)
	}
	if !slices.Equal(listed, want) {
		t.Errorf("listed %q", listed)
	}
	b.Inject(dropboxtest.Tagged(409, "reset").On("list_folder/continue"))
	for _, err := range s.List(t.Context(), "") {
		if err == nil {
			t.Fatal("a listing that cannot be read to its end shows something")
		}
	}
}

// What is deleted while it is being listed may be shown or not; a listing that says so at its end does not show it.
func TestDeletedWhileListed(t *testing.T) {
	b := newBox(t, dropboxtest.Options{PageSize: 1})
	s, other := b.open(t), b.open(t)
	for _, name := range []string{"a", "b", "c"} {
		store(t, s, name, content(1))
	}
	b.Inject(dropboxtest.Do(func() {
		if err := other.Delete(context.Background(), "b"); err != nil {
			t.Error(err)
		}
	}).On("list_folder/continue").Nth(1))
	var listed []string
	for info, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, info.Name)
	}
	if !slices.Equal(listed, []string{"a", "c"}) {
		t.Errorf("listed %q", listed)
	}
}

func TestHeaderSafe(t *testing.T) {
	for in, want := range map[string]string{
		`{"path":"/a b"}`: `{"path":"/a b"}`, "ü": `\u00fc`, "数": `\u6570`, "😀": `\ud83d\ude00`, "\x7f": `\u007f`, "~": "~",
	} {
		if got := headerSafe(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// authorize plays the person with the browser.
func authorize(t *testing.T, z *Authorization) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, z.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	code, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s, %v", res.StatusCode, code, err)
	}
	return string(code)
}

func TestAuthorize(t *testing.T) {
	b := newBox(t, dropboxtest.Options{})
	z, err := Authorize(dropboxtest.DefaultAppKey, b.url+"/")
	if err != nil {
		t.Fatal(err)
	}
	code := authorize(t, z)
	stolen, err := Authorize(dropboxtest.DefaultAppKey, b.url)
	if err != nil {
		t.Fatal(err)
	}
	_, err = stolen.Finish(t.Context(), code) // who only has the code has nothing, and it is used up
	wantErr(t, "stolen code", err, storage.ErrPermanent, "begin again")
	refresh, err := z.Finish(t.Context(), " "+authorize(t, z)+"\n")
	if err != nil {
		t.Fatal(err)
	}
	a, err := NewAccount(AccountOptions{AppKey: dropboxtest.DefaultAppKey, RefreshToken: refresh, Endpoint: b.url})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	store(t, opened(t, Options{Account: a}), "o", content(1))

	b = newBox(t, dropboxtest.Options{Scopes: "account_info.read files.metadata.read files.content.read files.content.write"})
	if z, err = Authorize(dropboxtest.DefaultAppKey, b.url); err != nil {
		t.Fatal(err)
	}
	_, err = z.Finish(t.Context(), authorize(t, z))
	wantErr(t, "scopes", err, storage.ErrPermanent, "files.metadata.write")

	if z, err = Authorize("key", ""); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(z.URL)
	if err != nil || u.Host != "www.dropbox.com" || u.Query().Get("token_access_type") != "offline" || strings.Contains(z.URL, z.verifier) {
		t.Errorf("%s, %v", z.URL, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	good := AccountOptions{AppKey: "key", RefreshToken: secret.New("refresh-token")}
	account, err := NewAccount(good)
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*AccountOptions){
		"app key is missing":       func(o *AccountOptions) { o.AppKey = "" },
		"refresh token is missing": func(o *AccountOptions) { o.RefreshToken = secret.Secret{} },
		"stall is":                 func(o *AccountOptions) { o.Stall = -1 },
		"endpoint is no URL":       func(o *AccountOptions) { o.Endpoint = "dropbox.com" },
	} {
		o := good
		change(&o)
		if _, err := NewAccount(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	for want, o := range map[string]Options{
		"account is missing": {},
		"part size is 1":     {Account: account, PartSize: 1},
		"part size is 41943": {Account: account, PartSize: MinPart + 1},
		"part size is 15728": {Account: account, PartSize: 150 << 20},
		"folder is \"/a\"":   {Account: account, Folder: "/a"},
		"folder is \"a/..\"": {Account: account, Folder: "a/.."},
		"folder is 101":      {Account: account, Folder: strings.Repeat("f", 101)},
	} {
		if _, err := Open(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}

// A server that takes requests and never answers is given up, and so is the end of a caller's patience obeyed.
func TestASilentServer(t *testing.T) {
	b := newBox(t, dropboxtest.Options{})
	gate := dropboxtest.NewGate()
	defer gate.Release()
	b.Inject(dropboxtest.Stall(gate))
	a, err := NewAccount(AccountOptions{AppKey: dropboxtest.DefaultAppKey, RefreshToken: secret.New(dropboxtest.DefaultRefreshToken),
		Endpoint: b.url, Stall: 20e6})
	if err != nil {
		t.Fatal(err)
	}
	a.wait = (&waits{}).wait
	defer a.Close()
	s := opened(t, Options{Account: a})
	if _, err := s.Stat(t.Context(), "o"); err == nil || storage.Final(err) {
		t.Errorf("stat: %v, want an error that may pass", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-gate.Reached(); cancel() }()
	_, err = s.Stat(ctx, "o")
	wantErr(t, "stat", err, context.Canceled)
}
