package storage

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"
)

// Errors a caller branches on. Implementations classify; wrappers and callers only obey. An error that is none of these
// may be tried again.
var (
	// ErrNotFound: no object of that name.
	ErrNotFound = errors.New("object not found")
	// ErrExists: create-if-absent met an object of that name, whoever made it.
	ErrExists = errors.New("object exists")
	// ErrStale: the object is not of the version that the caller named.
	ErrStale = errors.New("object has changed")
	// ErrPermanent: repeating the call cannot help (no rights, bad name, disk full).
	ErrPermanent = errors.New("permanent storage error")
	// ErrFull: there is no room, on a disk or in an account. It is ErrPermanent as well: the call is not repeated; what made
	// it may begin again later, when somebody, or retention, has made room.
	ErrFull error = fullError{}
)

type fullError struct{}

func (fullError) Error() string        { return "storage is full" }
func (fullError) Is(target error) bool { return target == ErrPermanent }

// Info describes a stored object.
type Info struct {
	Name     string    // full name below the storage's root
	Size     int64     // bytes
	Modified time.Time // UTC, by the storage's clock
	Version  string    // opaque; changes whenever the content does (equal contents may share one)
}

// Condition says when a Put may take effect. The zero value is create-if-absent.
type Condition struct {
	// Version replaces an object of exactly this version; a missing or other one is ErrStale. Empty: the object must
	// not exist, else ErrExists.
	Version string
}

// Storage keeps named objects. Names are what ValidName accepts: relative, slash-separated, case kept. All methods are
// safe for concurrent use, may block until ctx ends, and never show a secret in an error. Every implementation passes
// storagetest.Run.
type Storage interface {
	// Put stores what r yields up to io.EOF under name: all of it, or nothing. Size is not known beforehand; memory is
	// bounded. An error from r, a cancelled ctx or the death of the process leaves no object of that name. Among
	// concurrent Puts of one condition exactly one wins. r is read from the calling goroutine or one that has ended
	// when Put returns; so whoever cancels ctx also ends a Read of r that blocks. A name that is a folder of others, or
	// lies below an object, is ErrPermanent.
	Put(ctx context.Context, name string, r io.Reader, c Condition) (Info, error)
	// Get opens an object. Reads end with io.EOF only at its true end; the caller closes the reader.
	Get(ctx context.Context, name string) (io.ReadCloser, Info, error)
	// Stat describes an object.
	Stat(ctx context.Context, name string) (Info, error)
	// List yields the objects below prefix (exact, delimited: "a/b" finds "a/b/c" and "a/b", never "a/bc"), in order of
	// name, bytewise. It ends with an error rather than with a partial listing taken for a whole one; an empty prefix
	// lists all. Names of reserved folders are never listed. What is put or deleted meanwhile may be missing or shown.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]
	// Delete removes an object; an absent one is no error.
	Delete(ctx context.Context, name string) error
}
