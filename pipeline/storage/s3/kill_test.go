package s3

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/secret"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// child uploads to the bucket named by its only argument, says when the second part has been taken from it, and would go
// on for ever.
func child(url string) {
	s, err := Open(Options{Endpoint: url, Bucket: os.Args[len(os.Args)-1], PathStyle: true, PartSize: MinPart,
		AccessKey: rootKey, SecretKey: secret.New(rootSecret)})
	if err == nil {
		_, err = s.Put(context.Background(), "b/1/data", &endless{}, storage.Condition{})
	}
	fmt.Println("ended:", err)
	os.Exit(1)
}

type endless struct{ done int64 }

func (e *endless) Read(p []byte) (int, error) {
	before := e.done / (4 * MinPart)
	e.done += int64(len(p))
	if before == 0 && e.done >= 4*MinPart {
		fmt.Println("four parts") // the first ones have been sent: only two are ever held
	}
	return len(p), nil
}

// A process that is killed in the middle of an upload leaves nothing that can be seen, and what it leaves is removed.
func TestKilledInTheMiddleOfAnUpload(t *testing.T) {
	o := options(t)
	s := opened(t, o)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, o.Bucket)
	cmd.Env = append(os.Environ(), childVar+"="+o.Endpoint)
	cmd.SysProcAttr = dieWithParent()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "four parts") {
		t.Errorf("the child says %q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()

	for info := range s.List(t.Context(), "") {
		t.Errorf("there is %q", info.Name)
	}
	_, err = s.Stat(t.Context(), "b/1/data")
	wantErr(t, "stat", err, storage.ErrNotFound)
	if left := uploads(t, s); len(left) != 1 {
		t.Fatalf("unfinished uploads: %q, want one", left)
	}
	if n, err := s.AbortUploads(t.Context(), time.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("aborted %d, %v", n, err)
	}
	wantNothing(t, s)
	if _, err := s.Put(t.Context(), "b/1/data", strings.NewReader("second try"), storage.Condition{}); err != nil {
		t.Error(err)
	}
}
