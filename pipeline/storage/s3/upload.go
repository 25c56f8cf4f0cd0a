package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// upload is a multipart upload that was begun.
type upload struct {
	*put
	id    string
	parts []minio.CompletePart
	size  int64
	cut   bool // a part's request ended without an answer, so that the server may still be taking it
}

// multipart puts an object whose first part is full.
func (p *put) multipart(ctx context.Context, first []byte, r io.Reader) (storage.Info, error) {
	o := p.options()
	o.UserMetadata["x-amz-checksum-algorithm"] = "CRC32C"
	// Not under ctx: an upload whose id is lost could not be aborted.
	id, err := p.s.core.NewMultipartUpload(context.WithoutCancel(ctx), p.s.bucket, p.key, o)
	if err != nil {
		return storage.Info{}, p.s.fail(ctx, err, "put %s: begin the upload", p.name)
	}
	u := &upload{put: p, id: id}
	if err := u.sendAll(ctx, first, r); err != nil {
		return storage.Info{}, errors.Join(err, u.abort(ctx))
	}
	if err := ended(ctx); err != nil {
		return storage.Info{}, errors.Join(fmt.Errorf("put %s: %w", p.name, err), u.abort(ctx))
	}
	info, err := p.commit(ctx, u.size, func(wait context.Context) (minio.UploadInfo, error) {
		return p.s.core.CompleteMultipartUpload(wait, p.s.bucket, p.key, id, u.parts, p.conditional(minio.PutObjectOptions{}))
	})
	if err != nil {
		return storage.Info{}, errors.Join(err, u.abort(ctx))
	}
	return info, nil
}

// sendAll reads in the caller's goroutine and sends in another one, which has ended when it returns. Two buffers go
// round between them.
func (u *upload) sendAll(ctx context.Context, first []byte, r io.Reader) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	full, free := make(chan []byte), make(chan []byte, 2)
	free <- nil // the second buffer is made when it is needed
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for b := range full {
			if err := u.send(ctx, b); err != nil {
				cancel(err)
			}
			free <- b
		}
	}()
	err := u.readAll(ctx, first, r, full, free)
	close(full)
	<-sent
	if cause := ended(ctx); cause != nil { // why sending failed, or why the caller gave up, rather than what follows
		return fmt.Errorf("put %s: %w", u.name, cause)
	}
	if err != nil {
		return fmt.Errorf("put %s: %w", u.name, err)
	}
	return nil
}

func (u *upload) readAll(ctx context.Context, b []byte, r io.Reader, full chan<- []byte, free <-chan []byte) error {
	for n := 2; ; n++ {
		full <- b
		if n > maxParts {
			return fmt.Errorf("the object is larger than %d parts can hold: give larger parts: %w", maxParts, storage.ErrPermanent)
		}
		size := int(partSize(n, u.s.part, u.estimate))
		if b = <-free; cap(b) < size {
			b = make([]byte, size)
		}
		read, end, err := fill(ctx, r, b[:size])
		if err != nil {
			return err
		}
		if b = b[:read]; end {
			if read > 0 {
				full <- b
			}
			return nil
		}
	}
}

// send sends the next part. Its errors have their class. After one it does nothing.
func (u *upload) send(ctx context.Context, b []byte) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	n, sum := len(u.parts)+1, checksum(b)
	part, err := u.s.core.PutObjectPart(ctx, u.s.bucket, u.key, u.id, n, bytes.NewReader(b), int64(len(b)), minio.PutObjectPartOptions{
		CustomHeader: http.Header{"X-Amz-Checksum-Crc32c": {sum}},
	})
	if err != nil {
		u.cut = true
		return u.s.fail(ctx, err, "send part %d", n)
	}
	u.parts = append(u.parts, minio.CompletePart{PartNumber: n, ETag: part.ETag, ChecksumCRC32C: sum})
	u.size += int64(len(b))
	return nil
}

// lateParts is when an aborted upload is looked for again: a server that was still taking a part, whose connection was cut,
// may bring the upload back after it was aborted, as the protocol says.
var lateParts = []time.Duration{0, 50 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond}

// abort removes the upload, whatever has become of ctx, and sees to it that it stays away when a part was cut off. What it
// cannot remove is logged, and left for AbortUploads.
func (u *upload) abort(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleFor)
	defer cancel()
	err := u.abortOnce(ctx)
	for i := 0; u.cut && err == nil && i < len(lateParts); i++ {
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(lateParts[i]):
			err = u.abortOnce(ctx)
		}
	}
	if err == nil {
		return nil
	}
	err = u.s.fail(ctx, err, "abort the upload of %s", u.name)
	u.s.log.WarnContext(ctx, "an unfinished upload was left in the bucket", "object", u.name, "upload", u.id, "err", err)
	return nil // the reason of the Put's failure counts
}

// abortOnce aborts the upload; that it is gone already is well.
func (u *upload) abortOnce(ctx context.Context) error {
	if err := u.s.core.AbortMultipartUpload(ctx, u.s.bucket, u.key, u.id); err != nil && !gone(err) {
		return err
	}
	return nil
}

func gone(err error) bool {
	var e minio.ErrorResponse
	return errors.As(err, &e) && e.Code == "NoSuchUpload"
}
