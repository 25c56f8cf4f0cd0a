package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// head asks for an object by its key.
func (s *Storage) head(ctx context.Context, key string) (minio.ObjectInfo, error) {
	return s.core.StatObject(ctx, s.bucket, key, minio.StatObjectOptions{})
}

// info describes an object. The protocol's headers have whole seconds, its listings more.
func (s *Storage) info(o minio.ObjectInfo) storage.Info {
	return storage.Info{
		Name: strings.TrimPrefix(o.Key, s.root), Size: o.Size, Modified: o.LastModified.UTC().Truncate(time.Second), Version: o.ETag,
	}
}

// Stat implements storage.Storage.
func (s *Storage) Stat(ctx context.Context, name string) (storage.Info, error) {
	if err := storage.ValidName(name); err != nil {
		return storage.Info{}, fmt.Errorf("stat: %w", err)
	}
	o, err := s.head(ctx, s.key(name))
	if absent(err) {
		err = s.reallyAbsent(ctx, err)
	}
	if err != nil {
		return storage.Info{}, s.fail(ctx, err, "stat %s", name)
	}
	return s.info(o), nil
}

// reallyAbsent asks whether the bucket is there, since an answer without a body cannot tell what is not.
func (s *Storage) reallyAbsent(ctx context.Context, err error) error {
	there, bucketErr := s.core.BucketExists(ctx, s.bucket)
	switch {
	case bucketErr != nil:
		return bucketErr
	case !there:
		return minio.ErrorResponse{Code: "NoSuchBucket", BucketName: s.bucket}
	}
	return err
}

// Get implements storage.Storage. A download that breaks off is taken up again where it was, as long as it is the same
// version.
func (s *Storage) Get(ctx context.Context, name string) (io.ReadCloser, storage.Info, error) {
	if err := storage.ValidName(name); err != nil {
		return nil, storage.Info{}, fmt.Errorf("get: %w", err)
	}
	body, o, _, err := s.core.GetObject(ctx, s.bucket, s.key(name), minio.GetObjectOptions{})
	if err != nil {
		return nil, storage.Info{}, s.fail(ctx, err, "get %s", name)
	}
	o.Key = s.key(name)
	return &download{s: s, ctx: ctx, info: s.info(o), body: body}, s.info(o), nil
}

// download reads one version of an object.
type download struct {
	s    *Storage
	ctx  context.Context // bounds Read, which has no place for it
	info storage.Info
	body io.ReadCloser

	done   int64
	broken int // times in a row without a byte in between
	err    error
}

func (d *download) Read(p []byte) (int, error) {
	for d.err == nil && len(p) > 0 {
		n, err := d.body.Read(p)
		d.done += int64(n)
		if n > 0 {
			d.broken = 0
		}
		switch {
		case err == io.EOF && d.done == d.info.Size:
			d.err = io.EOF
		case err == io.EOF:
			d.resume(io.ErrUnexpectedEOF)
		case err != nil:
			d.resume(err)
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, d.err
}

// resume opens the rest of the object, or keeps why it cannot.
func (d *download) resume(why error) {
	_ = d.body.Close()
	if d.broken++; d.broken >= attempts || d.ctx.Err() != nil {
		d.err = d.s.fail(d.ctx, why, "read %s after %d of %d bytes", d.info.Name, d.done, d.info.Size)
		return
	}
	var o minio.GetObjectOptions
	err := errors.Join(o.SetRange(d.done, 0), o.SetMatchETag(d.info.Version))
	if d.done == 0 {
		o = minio.GetObjectOptions{}
		err = o.SetMatchETag(d.info.Version)
	}
	if err != nil {
		d.err = err
		return
	}
	body, _, _, err := d.s.core.GetObject(d.ctx, d.s.bucket, d.s.key(d.info.Name), o)
	switch {
	case err == nil:
		d.body = body
	case precondition(err) || absent(err):
		d.err = fmt.Errorf("read %s: it broke off after %d of %d bytes: %w", d.info.Name, d.done, d.info.Size, storage.ErrStale)
	default:
		d.err = d.s.fail(d.ctx, err, "read %s after %d of %d bytes", d.info.Name, d.done, d.info.Size)
	}
}

// Close implements io.Closer.
func (d *download) Close() error {
	if d.err == nil {
		d.err = errors.New("object is closed")
	}
	return d.body.Close()
}
