package s3

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/fencepost/fencepost/pipeline/secret"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

// More objects than a page holds, and more prefixes: all of them, in order, once.
func TestListingsOfMoreThanAPage(t *testing.T) {
	const n = 1150
	s := fresh(t)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := w; i < n; i += 8 {
				key := fmt.Sprintf("b%04d/%d/data", i/2, i)
				if _, err := s.core.PutObject(t.Context(), s.bucket, key, strings.NewReader("x"), 1, "", "", minio.PutObjectOptions{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	var names []string
	for info, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, info.Name)
	}
	if len(names) != n || !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != n {
		t.Errorf("%d listed of %d, sorted: %v", len(names), n, slices.IsSorted(names))
	}
	count := 0
	for _, err := range s.List(t.Context(), "b0007") {
		if err != nil {
			t.Fatal(err)
		}
		count++
	}
	if count != 2 {
		t.Errorf("%d below one prefix, want 2", count)
	}
}

func TestPrefixesInOneBucketDoNotMix(t *testing.T) {
	o := options(t)
	with := func(prefix string) *Storage {
		o := o
		o.Prefix = prefix
		return opened(t, o)
	}
	shop, shop2, all := with("shop"), with("shop2"), with("")
	for i, s := range []*Storage{shop, shop2} {
		if _, err := s.Put(t.Context(), "a/data", strings.NewReader(fmt.Sprint(i)), storage.Condition{}); err != nil {
			t.Fatal(err)
		}
		if _, err := storage.Adopt(t.Context(), s, storage.Adoption{Cluster: fmt.Sprint(i), High: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range []*Storage{shop, shop2} {
		var names []string
		for info := range s.List(t.Context(), "") {
			names = append(names, info.Name)
		}
		if !slices.Equal(names, []string{"a/data"}) || string(read(t, s, "a/data")) != fmt.Sprint(i) {
			t.Errorf("storage %d lists %q and reads %q", i, names, read(t, s, "a/data"))
		}
		_, err := storage.CheckOwner(t.Context(), s, fmt.Sprint(1-i))
		wantErr(t, "owner", err, storage.ErrForeign)
	}
	var names []string
	for info := range all.List(t.Context(), "shop") {
		names = append(names, info.Name)
	}
	if !slices.Equal(names, []string{"shop/_fencepost/owner.json", "shop/a/data"}) {
		t.Errorf("the whole bucket: %q", names)
	}
}

// The suite once more below a long prefix with odd characters.
func TestConformanceBelowAPrefix(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Storage {
		o := options(t)
		o.Prefix = "äöü %2F+&?#/" + strings.Repeat("p", MaxPrefix-16)
		return opened(t, o)
	}, storagetest.ContentVersions)
}

// calls makes every call of a storage, all at once, and returns their errors.
func calls(t *testing.T, s *Storage) map[string]error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	errs := map[string]error{}
	for name, call := range map[string]func() error{
		"put": func() error { return discard(s.Put(t.Context(), "new", strings.NewReader("x"), storage.Condition{})) },
		"long put": func() error {
			return discard(s.Put(t.Context(), "long", bytes.NewReader(content(largeObject)), storage.Condition{}))
		},
		"get": func() error {
			r, _, err := s.Get(t.Context(), "there")
			if err == nil {
				_ = r.Close()
			}
			return err
		},
		"stat": func() error { return discard(s.Stat(t.Context(), "there")) },
		"list": func() (first error) {
			for _, err := range s.List(t.Context(), "") {
				first = errors.Join(first, err)
			}
			return first
		},
		"abort uploads": func() error { return discard(s.AbortUploads(t.Context(), time.Now().Add(-time.Hour))) },
		"delete":        func() error { return s.Delete(t.Context(), "gone") },
	} {
		wg.Go(func() {
			err := call()
			mu.Lock()
			defer mu.Unlock()
			errs[name] = err
		})
	}
	wg.Wait()
	return errs
}

func discard[T any](_ T, err error) error { return err }

func TestWrongCredentialsAndBuckets(t *testing.T) {
	o := options(t)
	if _, err := opened(t, o).Put(t.Context(), "there", strings.NewReader("x"), storage.Condition{}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Options)
		text   string
	}{
		"wrong secret": {func(o *Options) { o.SecretKey = secret.New("hunter3hunter3") }, "access denied"},
		"wrong key":    {func(o *Options) { o.AccessKey = "somebody" }, "access denied"},
		"wrong region": {func(o *Options) { o.Region = "eu-west-9" }, "region"},
		"no bucket":    {func(o *Options) { o.Bucket = "another-bucket" }, "bucket"},
	} {
		o := o
		c.change(&o)
		for call, err := range calls(t, opened(t, o)) {
			wantErr(t, name+": "+call, err, storage.ErrPermanent, c.text)
			if errors.Is(err, storage.ErrNotFound) {
				t.Errorf("%s: %s looks like an empty storage: %v", name, call, err)
			}
		}
	}
}

// Append-only credentials put, read, list and abort; what they may not do is told apart from what may pass.
func TestAppendOnlyCredentials(t *testing.T) {
	o := options(t)
	root := opened(t, o)
	if _, err := root.Put(t.Context(), "there", strings.NewReader("x"), storage.Condition{}); err != nil {
		t.Fatal(err)
	}
	o.AccessKey, o.SecretKey = "appender", secret.New("hunter4hunter4")
	program, err := findGateway()
	if err != nil {
		t.Fatal(err)
	}
	create := exec.CommandContext(t.Context(), program, "admin", "--access", rootKey, "--secret", rootSecret, "--endpoint-url", o.Endpoint,
		"create-user", "--access", o.AccessKey, "--secret", o.SecretKey.Reveal(), "--role", "user")
	if out, err := create.CombinedOutput(); err != nil {
		t.Fatalf("create the user: %v: %s", err, out)
	}
	policy := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":["appender"]},
		"Action":["s3:GetObject","s3:PutObject","s3:ListBucket","s3:ListBucketMultipartUploads","s3:AbortMultipartUpload"],
		"Resource":["arn:aws:s3:::%[1]s","arn:aws:s3:::%[1]s/*"]}]}`, o.Bucket)
	if err := root.core.PutBucketPolicy(t.Context(), o.Bucket, policy); err != nil {
		t.Fatal(err)
	}
	appender := opened(t, o)
	wantErr(t, "delete", appender.Delete(t.Context(), "there"), storage.ErrPermanent, "access denied")
	if got := read(t, root, "there"); string(got) != "x" {
		t.Errorf("the object is %q", got)
	}
	for call, err := range calls(t, appender) {
		if call == "delete" {
			wantErr(t, call, err, storage.ErrPermanent, "access denied")
		} else if err != nil {
			t.Errorf("%s: %v", call, err)
		}
	}
	if left := uploads(t, root); len(left) > 0 {
		t.Errorf("unfinished uploads: %q", left)
	}
}

// A probe sees that credentials are append-only, and with all rights it leaves nothing, not even an unfinished upload.
func TestProbe(t *testing.T) {
	s := opened(t, options(t))
	steps, left := storage.Probe(t.Context(), s, storage.ProbeOptions{Long: MinPart + 1})
	for _, step := range steps {
		if step.Err != nil {
			t.Errorf("%s: %v", step.Name, step.Err)
		}
	}
	if open := uploads(t, s); len(steps) != 7 || len(left)+len(open) > 0 {
		t.Errorf("%d steps, left %q, unfinished uploads %q", len(steps), left, open)
	}
	steps, _ = storage.Probe(t.Context(), s, storage.ProbeOptions{AppendOnly: true})
	if at := slices.IndexFunc(steps, func(s storage.ProbeStep) bool { return s.Name == "delete" && s.Err != nil }); at < 0 {
		t.Errorf("credentials that may delete pass for append-only ones: %+v", steps)
	}
}

func TestObjectLock(t *testing.T) {
	o := options(t)
	o.Bucket += "-locked"
	makeBucket(t, o, minio.MakeBucketOptions{ObjectLocking: true})
	o.Lock = Lock{Mode: "governance", Days: 3}
	s := opened(t, o)
	for name, size := range map[string]int{"small": smallObject, "large": largeObject, storage.OwnerName: 10} {
		if _, err := s.Put(t.Context(), name, bytes.NewReader(content(size)), storage.Condition{}); err != nil {
			t.Fatal(err)
		}
		info, err := s.core.StatObject(t.Context(), s.bucket, name, minio.StatObjectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		mode, until := info.Metadata.Get("X-Amz-Object-Lock-Mode"), info.Metadata.Get(retainUntil)
		says, err := s.LockedUntil(t.Context(), name)
		if text := says.Format(time.RFC3339); err != nil || says.IsZero() != (until == "") || until != "" && text != until {
			t.Errorf("%s: said to be locked until %s, %v, want %q", name, text, err, until)
		}
		if name == storage.OwnerName {
			if mode != "" {
				t.Errorf("the owner object is locked until %v", until)
			}
			continue
		}
		end, err := time.Parse(time.RFC3339, until)
		if err != nil || mode != "GOVERNANCE" || time.Until(end) < 71*time.Hour || time.Until(end) > 73*time.Hour {
			t.Errorf("%s: locked %v until %v, %v", name, mode, until, err)
			continue
		}
		err = s.core.RemoveObject(t.Context(), s.bucket, name, minio.RemoveObjectOptions{VersionID: info.VersionID})
		wantErr(t, "remove the version", s.fail(t.Context(), err, "remove"), storage.ErrPermanent)
		if err := s.Delete(t.Context(), name); err != nil {
			t.Errorf("delete hides it: %v", err)
		}
		if says, err := s.LockedUntil(t.Context(), name); err != nil || !says.IsZero() {
			t.Errorf("a hidden one is locked until %v, %v", says, err)
		}
		_, err = s.Stat(t.Context(), name)
		wantErr(t, "stat of a hidden one", err, storage.ErrNotFound)
		r, _, _, err := s.core.GetObject(t.Context(), s.bucket, name, minio.GetObjectOptions{VersionID: info.VersionID})
		if err != nil {
			t.Errorf("the locked version is gone: %v", err)
			continue
		}
		if b, err := io.ReadAll(r); err != nil || !bytes.Equal(b, content(size)) {
			t.Errorf("the locked version has %d bytes, %v", len(b), err)
		}
		_ = r.Close()
	}
}

// A server that takes connections and never says a word is given up, soon and with an error that may pass.
func TestASilentServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var held sync.WaitGroup
	held.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			held.Go(func() { _, _ = io.Copy(io.Discard, c); _ = c.Close() })
		}
	})
	defer held.Wait()
	defer l.Close()
	s := opened(t, Options{Endpoint: "http://" + l.Addr().String(), Bucket: "bucket", PathStyle: true, AccessKey: "k",
		SecretKey: secret.New("hunter2"), Stall: 20 * time.Millisecond})
	for call, err := range calls(t, s) {
		if err == nil || storage.Final(err) {
			t.Errorf("%s: %v, want an error that may pass", call, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	good := Options{Endpoint: "https://s3.example.org", Bucket: "backups", AccessKey: "id", SecretKey: secret.New("hunter2")}
	if _, err := Open(good); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"no endpoint":         {func(o *Options) { o.Endpoint = "" }, "endpoint is no URL"},
		"endpoint without //": {func(o *Options) { o.Endpoint = "s3.example.org:9000" }, "endpoint is no URL"},
		"endpoint of ftp":     {func(o *Options) { o.Endpoint = "ftp://s3.example.org" }, "endpoint is no URL"},
		"endpoint with path":  {func(o *Options) { o.Endpoint = "https://s3.example.org/backups" }, "endpoint has more than a host"},
		"endpoint with keys":  {func(o *Options) { o.Endpoint = "https://id:hunter2@s3.example.org" }, "endpoint has more than a host"},
		"no bucket":           {func(o *Options) { o.Bucket = "" }, "bucket is missing"},
		"no key":              {func(o *Options) { o.AccessKey = "" }, "access key or secret key is missing"},
		"no secret":           {func(o *Options) { o.SecretKey = secret.Secret{} }, "access key or secret key is missing"},
		"small parts":         {func(o *Options) { o.PartSize = MinPart - 1 }, "part size is 5242879, want 5242880 to"},
		"large parts":         {func(o *Options) { o.PartSize = MaxPart + 1 }, "part size is"},
		"stall":               {func(o *Options) { o.Stall = -1 }, "stall is"},
		"prefix climbs":       {func(o *Options) { o.Prefix = "a/../b" }, "prefix"},
		"prefix with a slash": {func(o *Options) { o.Prefix = "a/" }, "prefix"},
		"prefix is long":      {func(o *Options) { o.Prefix = strings.Repeat("p", MaxPrefix+1) }, "prefix is 101 bytes long"},
		"lock without days":   {func(o *Options) { o.Lock.Mode = "compliance" }, "lock is for 0 days"},
		"lock without mode":   {func(o *Options) { o.Lock.Days = 3 }, "lock is for 3 days"},
		"lock of another":     {func(o *Options) { o.Lock = Lock{"forever", 3} }, `lock mode is "forever"`},
	} {
		o := good
		c.change(&o)
		_, err := Open(o)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q in it", name, err, c.want)
		}
	}
}
