package s3

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/fencepost/fencepost/pipeline/storage"
)

const (
	// mark is the name of the metadata that tells one Put from all others.
	mark = "Fencepost-Put"
	// settleFor bounds what a Put does after its outcome is known, or to learn it: looking, aborting.
	settleFor = 2 * time.Minute
)

// errConflict: the server refused the last step because of another call, and nothing of that is there now.
var errConflict = errors.New("another call was at the same object")

// put is one Put.
type put struct {
	s        *Storage
	name     string
	key      string
	cond     storage.Condition
	mark     string
	estimate int64
}

// Put implements storage.Storage.
func (s *Storage) Put(ctx context.Context, name string, r io.Reader, c storage.Condition) (storage.Info, error) {
	if err := storage.ValidName(name); err != nil {
		return storage.Info{}, fmt.Errorf("put: %w", err)
	}
	p := &put{s: s, name: name, key: s.key(name), cond: c, mark: rand.Text(), estimate: storage.Estimate(ctx)}
	if err := p.allowed(ctx); err != nil {
		return storage.Info{}, err
	}
	first, whole, err := readFirst(ctx, r, int(partSize(1, s.part, p.estimate)))
	if err != nil {
		return storage.Info{}, fmt.Errorf("put %s: %w", name, err)
	}
	if whole {
		return p.small(ctx, first)
	}
	return p.multipart(ctx, first, r)
}

// allowed is what can be known before the reader is read.
func (p *put) allowed(ctx context.Context) error {
	info, err := p.s.head(ctx, p.key)
	switch {
	case err == nil && p.cond.Version == "":
		return fmt.Errorf("put %s: %w", p.name, storage.ErrExists)
	case err == nil && p.cond.Version != info.ETag, absent(err) && p.cond.Version != "":
		return fmt.Errorf("put %s: %w", p.name, storage.ErrStale)
	case err == nil:
		return nil
	case !absent(err):
		return p.s.fail(ctx, err, "put %s", p.name)
	}
	for i, c := range p.name {
		if c != '/' {
			continue
		}
		if _, err := p.s.head(ctx, p.s.key(p.name[:i])); err == nil {
			return fmt.Errorf("put %s: it would lie below the object %s: %w", p.name, p.name[:i], storage.ErrPermanent)
		} else if !absent(err) {
			return p.s.fail(ctx, err, "put %s", p.name)
		}
	}
	for info := range p.s.core.ListObjectsIter(ctx, p.s.bucket, minio.ListObjectsOptions{Prefix: p.key + "/", Recursive: true, MaxKeys: 1}) {
		if info.Err != nil {
			return p.s.fail(ctx, info.Err, "put %s", p.name)
		}
		return fmt.Errorf("put %s: it is a folder of others: %w", p.name, storage.ErrPermanent)
	}
	return ended(ctx)
}

// readFirst reads what r yields, up to size bytes; whole says that this was all. Small objects take little memory.
func readFirst(ctx context.Context, r io.Reader, size int) (b []byte, whole bool, err error) {
	b = make([]byte, 0, min(size, 32<<10))
	for len(b) < size {
		if len(b) == cap(b) {
			b = append(make([]byte, 0, min(size, 4*cap(b))), b...)
		}
		n, end, err := fill(ctx, r, b[len(b):cap(b)])
		b = b[:len(b)+n]
		if end || err != nil {
			return b, end, err
		}
	}
	return b, false, nil
}

// fill reads until b is full, r ends (end), or r or ctx fail. Unlike io.ReadFull it tells an end from the same error of r.
func fill(ctx context.Context, r io.Reader, b []byte) (n int, end bool, err error) {
	for n < len(b) {
		if err := ended(ctx); err != nil {
			return n, false, err
		}
		m, err := r.Read(b[n:])
		n += m
		if err == io.EOF {
			return n, true, ended(ctx)
		}
		if err != nil {
			return n, false, err
		}
	}
	return n, false, ended(ctx)
}

// options are what an object is made with.
func (p *put) options() minio.PutObjectOptions {
	o := minio.PutObjectOptions{UserMetadata: map[string]string{mark: p.mark}}
	if p.s.lock.Mode != "" && p.name != storage.OwnerName {
		o.Mode = minio.RetentionMode(strings.ToUpper(p.s.lock.Mode))
		o.RetainUntilDate = time.Now().UTC().AddDate(0, 0, p.s.lock.Days)
	}
	return o
}

// conditional adds the condition to the step that makes the object.
func (p *put) conditional(o minio.PutObjectOptions) minio.PutObjectOptions {
	if p.cond.Version == "" {
		o.SetMatchETagExcept("*")
	} else {
		o.SetMatchETag(p.cond.Version)
	}
	return o
}

// checksum is the CRC-32C of b as the protocol writes it.
func checksum(b []byte) string {
	sum := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

// small puts an object of one part.
func (p *put) small(ctx context.Context, b []byte) (storage.Info, error) {
	o := p.conditional(p.options())
	o.UserMetadata["x-amz-checksum-crc32c"] = checksum(b)
	// ctx ends the sending, but not the waiting for the answer: then it could not be known what has happened.
	return p.commit(ctx, int64(len(b)), func(wait context.Context) (minio.UploadInfo, error) {
		body := &sending{ctx: ctx, Reader: *bytes.NewReader(b)}
		return p.s.core.PutObject(wait, p.s.bucket, p.key, body, int64(len(b)), "", "", o)
	})
}

// commit takes the step that makes the object, and again when the server says that another call was in its way. The
// step's context does not end with ctx.
func (p *put) commit(ctx context.Context, size int64, step func(context.Context) (minio.UploadInfo, error)) (storage.Info, error) {
	for n := 1; ; n++ {
		made, err := step(context.WithoutCancel(ctx))
		info, err := p.settle(ctx, made, size, err)
		if !errors.Is(err, errConflict) || n == attempts {
			return info, err
		}
		t := time.NewTimer(100 * time.Millisecond << n)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return storage.Info{}, fmt.Errorf("put %s: %w", p.name, context.Cause(ctx))
		}
	}
}

// sending is a body that fails while there is something left to send and ctx has ended. It can be rewound.
type sending struct {
	bytes.Reader
	ctx context.Context // bounds Read, which has no place for it
}

func (s *sending) Read(b []byte) (int, error) {
	if s.Len() > 0 {
		if err := ended(s.ctx); err != nil {
			return 0, err
		}
	}
	return s.Reader.Read(b)
}

// settle turns the answer to the last step into the answer of Put. Whatever the error, the object may be there: the
// answer may have been lost, and its repetition refused because of what it had made itself.
func (p *put) settle(ctx context.Context, made minio.UploadInfo, size int64, err error) (storage.Info, error) {
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleFor)
	defer cancel()
	now, headErr := p.s.head(look, p.key)
	ours := headErr == nil && now.UserMetadata[mark] == p.mark
	switch {
	case ours:
		return p.s.info(now), nil
	case err == nil: // it was made, and is replaced or deleted already, or cannot be seen now
		return storage.Info{Name: p.name, Size: size, Modified: time.Now().UTC().Truncate(time.Second), Version: made.ETag}, nil
	case ended(ctx) != nil:
		return storage.Info{}, fmt.Errorf("put %s: %w", p.name, ended(ctx))
	case !lost(err):
		return storage.Info{}, p.s.fail(ctx, err, "put %s", p.name)
	case p.cond.Version != "" && (absent(headErr) || headErr == nil && now.ETag != p.cond.Version):
		return storage.Info{}, fmt.Errorf("put %s: %w", p.name, storage.ErrStale)
	case p.cond.Version == "" && (headErr == nil || precondition(err)):
		return storage.Info{}, fmt.Errorf("put %s: %w", p.name, storage.ErrExists)
	}
	return storage.Info{}, p.s.clean.Error(fmt.Errorf("put %s: %w: %w", p.name, errConflict, err))
}

// precondition tells whether the server said that the condition did not hold, rather than that others were at it.
func precondition(err error) bool {
	var e minio.ErrorResponse
	return errors.As(err, &e) && e.Code == "PreconditionFailed"
}
