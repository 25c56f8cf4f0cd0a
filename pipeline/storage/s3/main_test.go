package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/fencepost/fencepost/pipeline/secret"
	"github.com/fencepost/fencepost/pipeline/storage"
)

const (
	rootKey    = "fencepost-test"
	rootSecret = "hunter2+hunter/2"
	// childVar makes the test binary a process that uploads until it is killed; its value is the server's URL.
	childVar = "FENCEPOST_S3_TEST_CHILD"
)

// gateway is a versitygw in front of a directory, shared by the tests of this binary.
type gateway struct {
	url  string
	dir  string
	cmd  *exec.Cmd
	log  bytes.Buffer
	err  error
	done chan struct{}
}

// shared starts the gateway when the first test asks for it; TestMain ends it.
var shared struct {
	once    sync.Once
	gateway *gateway
}

var buckets atomic.Int64

func TestMain(m *testing.M) {
	if url := os.Getenv(childVar); url != "" {
		child(url)
	}
	code := m.Run()
	if g := shared.gateway; g != nil {
		g.stop()
	}
	os.Exit(code)
}

func server(t testing.TB) *gateway {
	t.Helper()
	shared.once.Do(func() { shared.gateway = startGateway() })
	if shared.gateway.err != nil {
		t.Fatal(shared.gateway.err)
	}
	return shared.gateway
}

// findGateway is the path of the server that make deps has built.
func findGateway() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	program := filepath.Join(cache, "fencepost", "tools", "versitygw-v1.8.0")
	if _, err := os.Stat(program); err != nil {
		return "", fmt.Errorf("the S3 server for tests is missing (make deps builds it): %w", err)
	}
	return program, nil
}

func startGateway() *gateway {
	g := &gateway{done: make(chan struct{})}
	program, err := findGateway()
	if err != nil {
		g.err = err
		return g
	}
	if g.dir, g.err = os.MkdirTemp("", "fencepost-s3-"); g.err != nil {
		return g
	}
	for _, sub := range []string{"data", "versions", "iam"} {
		if g.err = os.Mkdir(filepath.Join(g.dir, sub), 0o700); g.err != nil {
			return g
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		g.err = err
		return g
	}
	address := l.Addr().String()
	g.err = l.Close()
	g.url = "http://" + address
	g.cmd = exec.Command(program, "--access", rootKey, "--secret", rootSecret, "--port", address, "--quiet", "--keep-alive",
		"--iam-dir", filepath.Join(g.dir, "iam"), "--health", "/health",
		"posix", "--versioning-dir", filepath.Join(g.dir, "versions"), filepath.Join(g.dir, "data"))
	g.cmd.Stdout, g.cmd.Stderr = &g.log, &g.log
	g.cmd.SysProcAttr = dieWithParent()
	if g.err = g.cmd.Start(); g.err != nil {
		return g
	}
	go func() { _ = g.cmd.Wait(); close(g.done) }()
	g.err = g.ready()
	return g
}

func (g *gateway) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+"/health", nil)
		if err != nil {
			return err
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			return res.Body.Close()
		}
		select {
		case <-g.done:
			return fmt.Errorf("the S3 server for tests ended: %s", g.log.String())
		case <-ctx.Done():
			return fmt.Errorf("the S3 server for tests does not answer: %s", g.log.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (g *gateway) stop() {
	if g.cmd != nil && g.cmd.Process != nil {
		_ = g.cmd.Process.Kill()
		<-g.done
	}
	if g.dir != "" {
		_ = os.RemoveAll(g.dir)
	}
}

// options are those of a fresh bucket, with small parts.
func options(t testing.TB) Options {
	t.Helper()
	o := Options{
		Endpoint: server(t).url, Bucket: fmt.Sprintf("bucket-%d", buckets.Add(1)), PathStyle: true, PartSize: MinPart,
		AccessKey: rootKey, SecretKey: secret.New(rootSecret),
	}
	makeBucket(t, o, minio.MakeBucketOptions{})
	return o
}

func makeBucket(t testing.TB, o Options, how minio.MakeBucketOptions) {
	t.Helper()
	s := opened(t, o)
	if err := s.core.MakeBucket(t.Context(), o.Bucket, how); err != nil {
		t.Fatal(err)
	}
}

func opened(t testing.TB, o Options) *Storage {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// fresh is a storage in a bucket of its own.
func fresh(t testing.TB) *Storage { return opened(t, options(t)) }

// uploads are the unfinished uploads of s's bucket, all of them.
func uploads(t testing.TB, s *Storage) []string {
	t.Helper()
	var keys []string
	for key, id := "", ""; ; {
		page, err := s.core.ListMultipartUploads(t.Context(), s.bucket, "", key, id, "", 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range page.Uploads {
			keys = append(keys, u.Key)
		}
		if !page.IsTruncated {
			return keys
		}
		key, id = page.NextKeyMarker, page.NextUploadIDMarker
	}
}

// wantNothing checks that s holds no object and no unfinished upload.
func wantNothing(t testing.TB, s *Storage) {
	t.Helper()
	for info, err := range s.List(t.Context(), "") {
		t.Errorf("there is %q, %v", info.Name, err)
	}
	if left := uploads(t, s); len(left) > 0 {
		t.Errorf("unfinished uploads: %q", left)
	}
}

func wantErr(t testing.TB, what string, err, class error, text ...string) {
	t.Helper()
	if !errors.Is(err, class) {
		t.Errorf("%s: %v, want %v", what, err, class)
		return
	}
	for _, part := range text {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want %q in it", what, err, part)
		}
	}
	if strings.Contains(err.Error(), "hunter") {
		t.Errorf("%s: a secret in %v", what, err)
	}
}

var (
	_ storage.Storage = (*Storage)(nil)
	_ storage.Janitor = (*Storage)(nil)
	_ storage.Locker  = (*Storage)(nil)
)
