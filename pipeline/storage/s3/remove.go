package s3

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// Delete implements storage.Storage. Credentials that may not delete get ErrPermanent.
func (s *Storage) Delete(ctx context.Context, name string) error {
	if err := storage.ValidName(name); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	if err := s.core.RemoveObject(ctx, s.bucket, s.key(name), minio.RemoveObjectOptions{}); err != nil && !absent(err) {
		return s.fail(ctx, err, "delete %s", name)
	}
	return nil
}

// AbortUploads aborts the uploads below the prefix that were begun before that time, and returns how many. They are what
// processes that died have left: invisible in listings, and paid for. A process that still uploads loses its upload, so
// the time should lie further back than any upload takes (eight days, as long as tombstones stay). It may be called at
// any time and from several nodes; an upload that is gone already does not count.
func (s *Storage) AbortUploads(ctx context.Context, before time.Time) (int, error) {
	aborted := 0
	var errs []error
	for key, id := "", ""; ; {
		page, err := s.core.ListMultipartUploads(ctx, s.bucket, s.root, key, id, "", 1000)
		if err != nil {
			return aborted, errors.Join(append(errs, s.fail(ctx, err, "list unfinished uploads"))...)
		}
		for _, u := range page.Uploads {
			if !u.Initiated.Before(before) {
				continue
			}
			switch err := s.core.AbortMultipartUpload(ctx, s.bucket, u.Key, u.UploadID); {
			case err == nil:
				aborted++
				s.log.InfoContext(ctx, "aborted an unfinished upload", "key", u.Key, "begun", u.Initiated)
			case !gone(err):
				errs = append(errs, s.fail(ctx, err, "abort the upload of %s", u.Key))
			}
		}
		if !page.IsTruncated || page.NextKeyMarker == "" && page.NextUploadIDMarker == "" {
			return aborted, errors.Join(errs...)
		}
		key, id = page.NextKeyMarker, page.NextUploadIDMarker
	}
}
