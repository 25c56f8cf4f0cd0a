package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// A source that fails at any place leaves no object and no upload that somebody pays for.
func TestASourceThatFailsLeavesNothing(t *testing.T) {
	s := fresh(t)
	boom := errors.New("dump failed")
	for _, after := range []int{0, 1, MinPart - 1, MinPart, MinPart + 1, 2 * MinPart, 2*MinPart + 77} {
		for _, cause := range []error{boom, io.ErrUnexpectedEOF} {
			_, err := s.Put(t.Context(), "b/1/data", io.MultiReader(bytes.NewReader(content(after)), failing{cause}), storage.Condition{})
			wantErr(t, fmt.Sprintf("after %d bytes", after), err, cause)
			wantNothing(t, s)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		stalled := stalling{ctx: ctx, cancel: func() { cancel(boom) }}
		_, err := s.Put(ctx, "b/1/data", io.MultiReader(bytes.NewReader(content(after)), stalled), storage.Condition{})
		wantErr(t, fmt.Sprintf("stalled after %d bytes", after), err, boom)
		wantNothing(t, s)
	}
}

// stalling is a source that says nothing more until it is ended.
type stalling struct {
	ctx    context.Context
	cancel func()
}

func (s stalling) Read([]byte) (int, error) {
	s.cancel()
	<-s.ctx.Done()
	return 0, context.Cause(s.ctx)
}

// cancelling yields n bytes, and cancels when so many have been read.
type cancelling struct {
	r      io.Reader
	at     int
	cancel func()
	done   int
}

func (c *cancelling) Read(p []byte) (int, error) {
	if c.done >= c.at && c.cancel != nil {
		c.cancel()
		c.cancel = nil
	}
	n, err := c.r.Read(p[:min(len(p), 64<<10)])
	c.done += n
	return n, err
}

func TestACancelledPutLeavesNothing(t *testing.T) {
	s := fresh(t)
	cause := errors.New("cancelled by a person")
	for _, at := range []int{0, 1, MinPart, MinPart + 100_000, 2 * MinPart, largeObject - 1, largeObject} {
		ctx, cancel := context.WithCancelCause(t.Context())
		r := &cancelling{r: bytes.NewReader(content(largeObject)), at: at, cancel: func() { cancel(cause) }}
		_, err := s.Put(ctx, "b/1/data", r, storage.Condition{})
		cancel(nil)
		wantErr(t, fmt.Sprintf("after %d bytes", at), err, cause)
		wantNothing(t, s)
	}
}

// Cancelled while a request runs: in each of the steps, the outcome is what the answer says.
func TestCancelledWithinEachStep(t *testing.T) {
	for size, kinds := range map[int][]string{
		smallObject: {"head", "list", "put"}, largeObject: {"begin", "part 1", "part 3", "complete", "abort"},
	} {
		for _, k := range kinds {
			t.Run(k+" not sent yet", func(t *testing.T) { cancelledWithin(t, k, size, false) })
			t.Run(k+" done, answer on its way", func(t *testing.T) { cancelledWithin(t, k, size, true) })
		}
	}
}

func cancelledWithin(t *testing.T, step string, size int, done bool) {
	s, f := faulty(t, options(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f.set(func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		if kind(r) != step {
			return send()
		}
		if !done {
			cancel()
			return send()
		}
		res, err := send()
		cancel()
		if r.Context().Err() != nil && err == nil { // whoever gives up with ctx does not see the answer
			_ = res.Body.Close()
			return nil, r.Context().Err()
		}
		return res, err
	})
	_, err := s.Put(ctx, "o", bytes.NewReader(content(size)), storage.Condition{})
	f.set(nil)
	switch _, statErr := s.Stat(t.Context(), "o"); {
	case err == nil && statErr != nil:
		t.Errorf("put says yes, stat says %v", statErr)
	case err == nil && step != "complete" && step != "put" && step != "abort":
		t.Error("cancelled, and made all the same")
	case err != nil && (!errors.Is(err, context.Canceled) || !errors.Is(statErr, storage.ErrNotFound)):
		t.Errorf("put says %v, stat %v", err, statErr)
	}
	if left := uploads(t, s); len(left) > 0 {
		t.Errorf("unfinished uploads: %q", left)
	}
}

// Many long uploads to one name: one wins, the others are told and leave nothing.
func TestOneOfManyUploadsWins(t *testing.T) {
	o := options(t)
	racers := make([]*Storage, 6) // as on so many nodes
	for i := range racers {
		racers[i] = opened(t, o)
	}
	for round := range 3 {
		name := fmt.Sprintf("b/%d/data", round)
		var winner atomic.Int64
		winner.Store(-1)
		var ready, wg sync.WaitGroup
		ready.Add(len(racers))
		for i, s := range racers {
			wg.Go(func() {
				body := content(largeObject)
				body[0] = byte(i)
				// all have passed the look beforehand when the first one completes
				gate := &cancelling{r: bytes.NewReader(body), at: MinPart, cancel: func() { ready.Done(); ready.Wait() }}
				_, err := s.Put(t.Context(), name, gate, storage.Condition{})
				switch {
				case err == nil && !winner.CompareAndSwap(-1, int64(i)):
					t.Errorf("%d won, and so did another", i)
				case err != nil && !errors.Is(err, storage.ErrExists):
					t.Errorf("%d: %v, want %v", i, err, storage.ErrExists)
				}
			})
		}
		wg.Wait()
		if won := winner.Load(); won < 0 {
			t.Fatal("nobody won")
		} else if got := read(t, racers[0], name); len(got) != largeObject || got[0] != byte(won) {
			t.Errorf("the winner is %d, there is what %d put", won, got[0])
		}
	}
	if left := uploads(t, racers[0]); len(left) > 0 {
		t.Errorf("unfinished uploads: %q", left)
	}
}

// A late owner, whose upload is complete but for its last step, loses against a tombstone made meanwhile.
func TestALateUploadLoses(t *testing.T) {
	s := fresh(t)
	late := &cancelling{r: bytes.NewReader(content(largeObject)), at: largeObject, cancel: func() {
		if _, err := s.Put(t.Context(), "b/1/manifest.json", strings.NewReader("void"), storage.Condition{}); err != nil {
			t.Error(err)
		}
	}}
	_, err := s.Put(t.Context(), "b/1/manifest.json", late, storage.Condition{})
	wantErr(t, "late put", err, storage.ErrExists)
	if got := read(t, s, "b/1/manifest.json"); string(got) != "void" {
		t.Errorf("%d bytes are there", len(got))
	}
	if left := uploads(t, s); len(left) > 0 {
		t.Errorf("unfinished uploads: %q", left)
	}
}

// What an abort cannot remove is logged, and AbortUploads removes it when it is old enough, below the prefix only.
func TestAbortUploads(t *testing.T) {
	o := options(t)
	var log bytes.Buffer
	o.Log, o.Prefix = slog.New(slog.NewTextHandler(&log, nil)), "shop"
	s, f := faulty(t, o)
	f.set(func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		if k := kind(r); k == "part 2" || k == "abort" {
			return nil, errWire
		}
		return send()
	})
	_, err := s.Put(t.Context(), "a/data", bytes.NewReader(content(largeObject)), storage.Condition{})
	wantErr(t, "put", err, errWire)
	if !strings.Contains(log.String(), "an unfinished upload was left in the bucket") || !strings.Contains(log.String(), "object=a/data") {
		t.Errorf("log: %s", log.String())
	}
	f.set(first(1, "begin", unanswered))
	if _, err := s.Put(t.Context(), "b/data", bytes.NewReader(content(largeObject)), storage.Condition{}); err != nil {
		t.Fatal(err)
	}
	f.set(nil)
	for _, other := range []string{"shop2/x", "elsewhere"} {
		if _, err := s.core.NewMultipartUpload(t.Context(), s.bucket, other, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if left := uploads(t, s); len(left) != 4 {
		t.Fatalf("unfinished uploads: %q, want 4", left)
	}
	if n, err := s.AbortUploads(t.Context(), time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Errorf("younger ones: %d, %v", n, err)
	}
	soon := time.Now().Add(time.Hour)
	if n, err := s.AbortUploads(t.Context(), soon); n != 2 || err != nil {
		t.Errorf("aborted %d, %v, want 2", n, err)
	}
	if left := uploads(t, s); len(left) != 2 || strings.HasPrefix(left[0], "shop/") || strings.HasPrefix(left[1], "shop/") {
		t.Errorf("left: %q", left)
	}
	if got := read(t, s, "b/data"); len(got) != largeObject {
		t.Errorf("the finished object has %d bytes", len(got))
	}
	if n, err := s.AbortUploads(t.Context(), soon); n != 0 || err != nil {
		t.Errorf("again: %d, %v", n, err)
	}
}

// counting yields n bytes of a pattern and samples the heap.
type counting struct {
	n, done    int64
	base, peak uint64
}

func (c *counting) Read(p []byte) (int, error) {
	if c.done%(1<<20) == 0 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if c.base == 0 {
			c.base = m.HeapInuse
		}
		c.peak = max(c.peak, m.HeapInuse)
	}
	if c.done == c.n {
		return 0, io.EOF
	}
	n := min(int64(len(p)), 64<<10, c.n-c.done, 1<<20-c.done%(1<<20))
	for i := range p[:n] {
		p[i] = byte(c.done) + byte(i)
	}
	c.done += n
	return int(n), nil
}

// Two parts and what the collector is behind, whatever the length.
func TestMemoryOfALongPut(t *testing.T) {
	o := options(t)
	o.PartSize = DefaultPart
	s := opened(t, o)
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // so that the heap shows what is in use
	runtime.GC()
	r := &counting{n: 160 << 20}
	info, err := s.Put(t.Context(), "long", r, storage.Condition{})
	if err != nil || info.Size != r.n {
		t.Fatalf("%+v, %v", info, err)
	}
	grown := int64(r.peak) - int64(r.base)
	if grown > 4*DefaultPart { // two in use, one that the collector has not seen, and the rest of the world
		t.Errorf("the heap grew by %d MiB for %d MiB in parts of %d MiB", grown>>20, r.n>>20, DefaultPart>>20)
	}
	t.Logf("the heap grew by %d MiB for %d MiB in parts of %d MiB", grown>>20, r.n>>20, DefaultPart>>20)
}

func TestEveryObjectHasAChecksumAndItsEstimate(t *testing.T) {
	s, f := faulty(t, options(t))
	ctx := storage.WithEstimate(t.Context(), 9000*(7<<20)-5)
	for name, size := range map[string]int{"small": smallObject, "large": 7<<20 + 1} {
		f.set(nil)
		if _, err := s.Put(ctx, name, bytes.NewReader(content(size)), storage.Condition{}); err != nil {
			t.Fatal(err)
		}
		o, err := s.core.StatObject(t.Context(), s.bucket, name, minio.StatObjectOptions{Checksum: true})
		if err != nil || o.ChecksumCRC32C == "" {
			t.Errorf("%s: checksum %q, %v", name, o.ChecksumCRC32C, err)
		}
		if n := f.count("part 1") + f.count("part 2"); name == "large" && (n != 2 || f.count("part 3") > 0) {
			t.Errorf("%d parts, want 2 of at most 7 MiB: %q", n, f.seen)
		}
	}
}
