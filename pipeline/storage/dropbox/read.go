package dropbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dropbox/dropbox-sdk-go-unofficial/v6/dropbox/contenthash"
	"github.com/dropbox/dropbox-sdk-go-unofficial/v6/dropbox/files"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// info describes the object name, which is m.
func info(name string, m *files.FileMetadata) storage.Info {
	return storage.Info{Name: name, Size: int64(m.Size), Modified: time.Time(m.ServerModified).UTC(), Version: m.Rev}
}

// head asks for what is at a path; a folder or nothing is absent.
func (s *Storage) head(ctx context.Context, path string) (*files.FileMetadata, error) {
	var found files.IsMetadata
	err := s.account.call(ctx, func(ctx context.Context) (err error) {
		found, err = s.files.GetMetadataContext(ctx, files.NewGetMetadataArg(path))
		return err
	})
	if err != nil {
		return nil, err
	}
	if m, ok := found.(*files.FileMetadata); ok {
		return m, nil
	}
	return nil, errNoFile
}

// errNoFile is what a folder is, when a file is asked for.
var errNoFile = &apiError{route: "files/get_metadata", status: 409, tags: "path/not_found", offset: -1, after: -1}

// Stat implements storage.Storage.
func (s *Storage) Stat(ctx context.Context, name string) (storage.Info, error) {
	if err := storage.ValidName(name); err != nil {
		return storage.Info{}, fmt.Errorf("stat: %w", err)
	}
	m, err := s.head(ctx, s.path(name))
	if err != nil {
		return storage.Info{}, s.fail(ctx, err, "stat %s", name)
	}
	return info(name, m), nil
}

// Get implements storage.Storage. A download that breaks off is taken up again where it was, of the same revision. At its
// end the whole is compared with the service's hash of it.
func (s *Storage) Get(ctx context.Context, name string) (io.ReadCloser, storage.Info, error) {
	if err := storage.ValidName(name); err != nil {
		return nil, storage.Info{}, fmt.Errorf("get: %w", err)
	}
	m, body, err := s.open(ctx, s.path(name), 0)
	if err != nil {
		if tagOf(err, "not_file") {
			err = errNoFile
		}
		return nil, storage.Info{}, s.fail(ctx, err, "get %s", name)
	}
	i := info(name, m)
	return &download{s: s, ctx: ctx, info: i, want: m.ContentHash, hash: contenthash.New(), body: body}, i, nil
}

// open opens a path, or a revision, at an offset.
func (s *Storage) open(ctx context.Context, path string, from int64) (m *files.FileMetadata, body io.ReadCloser, err error) {
	err = s.account.call(ctx, func(ctx context.Context) (err error) {
		arg := files.NewDownloadArg(path)
		if from > 0 {
			arg.ExtraHeaders = map[string]string{"Range": fmt.Sprintf("bytes=%d-", from)}
		}
		m, body, err = s.files.DownloadContext(ctx, arg)
		return err
	})
	return m, body, err
}

// download reads one revision of an object.
type download struct {
	s    *Storage
	ctx  context.Context // bounds Read, which has no place for it
	info storage.Info
	want string
	hash *contenthash.Hasher
	body io.ReadCloser

	done   int64
	broken int // times in a row without a byte in between
	err    error
}

func (d *download) Read(p []byte) (int, error) {
	for d.err == nil && len(p) > 0 {
		n, err := d.body.Read(p)
		d.done += int64(n)
		_, _ = d.hash.Write(p[:n]) // never fails
		if n > 0 {
			d.broken = 0
		}
		switch {
		case d.done > d.info.Size:
			d.err = d.s.fail(d.ctx, errors.New("there is more than its size"), "read %s", d.info.Name)
		case d.done == d.info.Size && (err == nil || err == io.EOF):
			d.err = d.end()
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

// end compares hashes when all is read.
func (d *download) end() error {
	if got := d.hash.HexDigest(); d.want != "" && got != d.want {
		return d.s.fail(d.ctx, fmt.Errorf("its content hash is %s, the service says %s", got, d.want), "read %s", d.info.Name)
	}
	return io.EOF
}

// resume opens the rest of the object, or keeps why it cannot.
func (d *download) resume(why error) {
	_ = d.body.Close()
	if d.broken++; d.broken >= attempts || d.ctx.Err() != nil {
		d.err = d.s.fail(d.ctx, why, "read %s after %d of %d bytes", d.info.Name, d.done, d.info.Size)
		return
	}
	if err := d.s.account.wait(d.ctx, backOff(d.broken)-firstPause); err != nil { // at once the first time
		d.err = d.s.fail(d.ctx, err, "read %s after %d of %d bytes", d.info.Name, d.done, d.info.Size)
		return
	}
	_, body, err := d.s.open(d.ctx, "rev:"+d.info.Version, d.done)
	switch {
	case err == nil:
		d.body = body
	case absent(err):
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
