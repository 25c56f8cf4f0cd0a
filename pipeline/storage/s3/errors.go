package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/minio/minio-go/v7"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// fail is the error of an operation: why ctx ended if it did, else err with its class, without secrets.
func (s *Storage) fail(ctx context.Context, err error, format string, args ...any) error {
	doing := fmt.Sprintf(format, args...)
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	}
	hint, class := classify(err)
	switch {
	case class == nil:
		err = fmt.Errorf("%s: %w", doing, err)
	case hint == "":
		err = fmt.Errorf("%s: %w: %w", doing, class, err)
	default:
		err = fmt.Errorf("%s: %s: %w: %w", doing, hint, class, err)
	}
	return s.clean.Error(err)
}

// classify returns what an error of the server means, where its own words do not say so, and its class, which is nil when
// the call may be tried again.
func classify(err error) (hint string, class error) {
	var e minio.ErrorResponse
	if !errors.As(err, &e) {
		return "", nil
	}
	switch e.Code {
	case "NoSuchKey", "NoSuchVersion":
		return "", storage.ErrNotFound
	case "NoSuchBucket":
		return "the bucket does not exist", storage.ErrPermanent
	case "AccessDenied", "AllAccessDisabled", "AccountProblem", "InvalidAccessKeyId", "SignatureDoesNotMatch":
		return "access denied (wrong credentials, or they have no right to this)", storage.ErrPermanent
	case "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "PermanentRedirect":
		return "the bucket is of another region, or of another endpoint", storage.ErrPermanent
	case "RequestTimeTooSkewed":
		return "the clock of this machine is wrong", storage.ErrPermanent
	case "QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded":
		return "the bucket is full", storage.ErrFull
	case "MethodNotAllowed", "ObjectLocked":
		return "the bucket does not allow it (is the object locked?)", storage.ErrPermanent
	}
	if slices.Contains([]string{"RequestTimeout", "IncompleteBody", "BadDigest", "XAmzContentChecksumMismatch", "InvalidPart",
		"NoSuchUpload", "ExpiredToken", "SlowDown", "OperationAborted"}, e.Code) {
		return "", nil
	}
	switch e.StatusCode {
	case http.StatusForbidden, http.StatusUnauthorized:
		return "access denied (wrong credentials, or they have no right to this)", storage.ErrPermanent
	case http.StatusBadRequest: // some answers have no body that says more
		return "the server refuses the request as it is (is the region right?)", storage.ErrPermanent
	case http.StatusInsufficientStorage:
		return "the bucket is full", storage.ErrFull
	case http.StatusNotImplemented, http.StatusMethodNotAllowed:
		return "", storage.ErrPermanent
	}
	return "", nil
}

// absent tells whether err says that there is no such object.
func absent(err error) bool {
	_, class := classify(err)
	return class == storage.ErrNotFound
}

// lost tells whether err says that the condition of a Put did not hold, or may not have.
func lost(err error) bool {
	var e minio.ErrorResponse
	return errors.As(err, &e) && (e.StatusCode == http.StatusPreconditionFailed || e.StatusCode == http.StatusConflict ||
		e.Code == "PreconditionFailed" || e.Code == "ConditionalRequestConflict" || absent(err))
}

// ended returns why ctx has ended, or nil.
func ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
