package e2e

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// gateway is a server of buckets of the test's own.
type gateway struct {
	program, address string
	secrets          string // a directory
}

const gatewayKey, gatewaySecret = "id", "a secret"

func startGateway(t *testing.T) gateway {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, sub := range []string{"data", "versions", "iam"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	g := gateway{program: filepath.Join(cache, "fencepost", "tools", "versitygw-v1.8.0"), address: fmt.Sprintf("127.0.0.1:%d", freePort(t)), secrets: t.TempDir()}
	cmd := exec.Command(g.program, "--access", gatewayKey, "--secret", gatewaySecret, "--port", g.address, "--quiet", "--health", "/health",
		"--iam-dir", filepath.Join(dir, "iam"), "posix", "--versioning-dir", filepath.Join(dir, "versions"), filepath.Join(dir, "data"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the S3 server for tests (make deps builds it): %v", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		res, err := http.Get("http://" + g.address + "/health")
		if err == nil {
			_ = res.Body.Close()
			return g
		}
		select {
		case <-ctx.Done():
			t.Fatal(errors.Join(err, context.Cause(ctx)))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// admin gives an order to the server.
func (g gateway) admin(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), g.program, append([]string{"admin", "--access", gatewayKey, "--secret", gatewaySecret,
		"--endpoint-url", "http://" + g.address}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %s%v", args, out, err)
	}
}

// bucket makes one of that name, and returns the YAML of a storage in it; more is what the storage has besides.
func (g gateway) bucket(t *testing.T, name, more string, how ...string) (yaml string) {
	t.Helper()
	g.admin(t, append([]string{"create-bucket", "--owner", gatewayKey, "--bucket", name}, how...)...)
	return g.storage(t, name, gatewayKey, gatewaySecret, more)
}

func (g gateway) storage(t *testing.T, bucket, key, secret, more string) (yaml string) {
	t.Helper()
	file := filepath.Join(g.secrets, bucket)
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("- {name: %[1]s, kind: s3, endpoint: \"http://%[2]s\", bucket: %[1]s, access_key: %[3]s, secret_key: \"file:%[4]s\", path_style: true%[5]s}\n",
		bucket, g.address, key, file, more)
}

// limited makes a bucket and a user who may do there only what the actions say, and returns the YAML of the user's storage.
func (g gateway) limited(t *testing.T, bucket, more string, actions ...string) (yaml string) {
	t.Helper()
	g.bucket(t, bucket, "")
	user, secret := "user-of-"+bucket, "another secret"
	g.admin(t, "create-user", "--access", user, "--secret", secret, "--role", "user")
	policy := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":[%q]},"Action":["%s"],
		"Resource":["arn:aws:s3:::%[3]s","arn:aws:s3:::%[3]s/*"]}]}`, user, strings.Join(actions, `","`), bucket)
	g.put(t, bucket, "policy=", policy)
	return g.storage(t, bucket, user, secret, more)
}

// put is a signed request of the protocol, as its owner, for what the server's own orders do not reach.
func (g gateway) put(t *testing.T, bucket, query, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, fmt.Sprintf("http://%s/%s?%s", g.address, bucket, query), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	sum := func(text string) string { s := sha256.Sum256([]byte(text)); return hex.EncodeToString(s[:]) }
	keyed := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	now := time.Now().UTC().Format("20060102T150405Z")
	scope := now[:8] + "/us-east-1/s3/aws4_request"
	asked := strings.Join([]string{"PUT", "/" + bucket, query, "host:" + g.address, "x-amz-content-sha256:" + sum(body), "x-amz-date:" + now, "",
		"host;x-amz-content-sha256;x-amz-date", sum(body)}, "\n")
	key := []byte("AWS4" + gatewaySecret)
	for _, part := range strings.Split(scope, "/") {
		key = keyed(key, part)
	}
	signature := hex.EncodeToString(keyed(key, strings.Join([]string{"AWS4-HMAC-SHA256", now, scope, sum(asked)}, "\n")))
	req.Header.Set("X-Amz-Content-Sha256", sum(body))
	req.Header.Set("X-Amz-Date", now)
	req.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=%s", gatewayKey, scope, signature))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var said bytes.Buffer
	if _, err := io.Copy(&said, res.Body); err != nil || res.StatusCode/100 != 2 {
		t.Fatalf("%s of %s: %s, %s, %v", query, bucket, res.Status, &said, err)
	}
}
