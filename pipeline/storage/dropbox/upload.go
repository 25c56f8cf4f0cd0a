package dropbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	sdk "github.com/dropbox/dropbox-sdk-go-unofficial/v6/dropbox"
	"github.com/dropbox/dropbox-sdk-go-unofficial/v6/dropbox/contenthash"
	"github.com/dropbox/dropbox-sdk-go-unofficial/v6/dropbox/files"

	"github.com/fencepost/fencepost/pipeline/storage"
)

const (
	// settleFor bounds what a Put does to learn its outcome, or to undo it, when its ctx may have ended.
	settleFor = 2 * time.Minute
	// spaceEvery is after how many bytes sent it is asked whether the account still has room for them: the service itself
	// says so only at the end.
	spaceEvery = 1 << 30
)

// upload is an upload session. Nothing of it can be seen before its finish, nor does it count as used space; the service
// forgets it by itself, since it has no call for that.
type upload struct {
	*put
	id   string
	size int64
	hash *contenthash.Hasher
	// mark is the time that the file shall have by its client, in whole seconds. Chosen at random within the last hour: a
	// file with our content and our mark is ours.
	mark  sdk.DBXTime
	asked int64 // size at which the space was asked for last
}

func newUpload(p *put) *upload {
	mark := time.Now().UTC().Truncate(time.Second).Add(-time.Duration(rand.IntN(3600)) * time.Second)
	return &upload{put: p, hash: contenthash.New(), mark: sdk.DBXTime(mark)}
}

// sendAll reads in the caller's goroutine and sends in another one, which has ended when it returns. Two buffers go round
// between them.
func (u *upload) sendAll(ctx context.Context, r io.Reader) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	full, free := make(chan []byte), make(chan []byte, 2)
	free <- nil // buffers are made when they are needed
	free <- nil
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
	err := u.readAll(ctx, r, full, free)
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

func (u *upload) readAll(ctx context.Context, r io.Reader, full chan<- []byte, free <-chan []byte) error {
	for first := true; ; first = false {
		b, end, err := fill(ctx, r, (<-free)[:0], u.s.part)
		if err != nil {
			return err
		}
		if first || len(b) > 0 {
			full <- b
		}
		if end {
			return nil
		}
	}
}

// fill reads until b has size bytes, r ends (end), or r or ctx fail. What is small takes little memory. Unlike
// io.ReadFull it tells an end from the same error of r.
func fill(ctx context.Context, r io.Reader, b []byte, size int) (_ []byte, end bool, err error) {
	for len(b) < size {
		if err := ended(ctx); err != nil {
			return b, false, err
		}
		if len(b) == cap(b) {
			b = append(make([]byte, 0, min(size, max(32<<10, 4*cap(b)))), b...)
		}
		n, err := r.Read(b[len(b):min(cap(b), size)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, true, ended(ctx)
		}
		if err != nil {
			return b, false, err
		}
	}
	return b, false, ended(ctx)
}

// send sends the next part. Its errors have their class. After one it does nothing.
func (u *upload) send(ctx context.Context, b []byte) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var err error
	if u.id == "" {
		err = u.start(ctx, b)
	} else {
		err = u.add(ctx, b)
	}
	if err != nil {
		return u.s.fail(ctx, err, "send part at %d", u.size)
	}
	_, _ = u.hash.Write(b) // never fails
	u.size += int64(len(b))
	return u.room(ctx)
}

// start begins the session. When its answer is lost another one is begun, and nothing depends on the first.
func (u *upload) start(ctx context.Context, b []byte) error {
	return u.s.account.call(ctx, func(ctx context.Context) error {
		arg := files.NewUploadSessionStartArg()
		arg.ContentHash = hashOf(b)
		res, err := u.s.files.UploadSessionStartContext(ctx, arg, bytes.NewReader(b))
		if err != nil {
			return err
		}
		u.id = res.SessionId
		return nil
	})
}

// add sends b, of which the service may have got all already, when an answer was lost: then it says which offset is
// right.
func (u *upload) add(ctx context.Context, b []byte) error {
	end := u.size + int64(len(b))
	return u.s.account.call(ctx, func(ctx context.Context) error {
		arg := files.NewUploadSessionAppendArg(files.NewUploadSessionCursor(u.id, uint64(u.size)))
		arg.ContentHash = hashOf(b)
		err := u.s.files.UploadSessionAppendV2Context(ctx, arg, bytes.NewReader(b))
		var e *apiError
		if errors.As(err, &e) && e.has("incorrect_offset") && e.offset == end {
			return nil
		}
		if errors.As(err, &e) && (e.has("not_found") || e.has("incorrect_offset")) {
			return fmt.Errorf("%w (%s)", errSessionGone, e)
		}
		return err
	})
}

func hashOf(b []byte) string {
	h := contenthash.New()
	_, _ = h.Write(b) // never fails
	return h.HexDigest()
}

// room asks now and then, for what is no small object, whether the account has room for what was sent. An answer that cannot be had says nothing.
func (u *upload) room(ctx context.Context) error {
	if u.size < int64(u.s.part) || u.asked != 0 && u.size < u.asked+u.s.spaceEvery {
		return nil
	}
	u.asked = u.size
	usage, err := u.s.account.users.GetSpaceUsageContext(ctx)
	if err != nil || usage.Allocation == nil {
		return nil
	}
	used, allocated := usage.Used, uint64(0)
	switch a := usage.Allocation; {
	case a.Individual != nil:
		allocated = a.Individual.Allocated
	case a.Team != nil && a.Team.UserWithinTeamSpaceAllocated != 0:
		allocated = a.Team.UserWithinTeamSpaceAllocated
	case a.Team != nil:
		used, allocated = a.Team.Used, a.Team.Allocated
	}
	if allocated > 0 && used+uint64(u.size) > allocated {
		return fmt.Errorf("the account is full: %d of %d bytes are used, and %d more were sent: %w", used, allocated, u.size, storage.ErrPermanent)
	}
	return nil
}

// finish makes the object. Once asked for, the answer is awaited whatever becomes of ctx, and when it is lost, what is
// there is looked at.
func (u *upload) finish(ctx context.Context) (storage.Info, error) {
	wait, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var made *files.FileMetadata
	err := u.s.account.perform(wait, call{sure: ctx, once: func(wait context.Context, unclear bool) error {
		return u.s.account.writing(wait, func() (err error) {
			made, err = u.finishOnce(wait, unclear)
			return err
		})
	}})
	switch {
	case err == nil:
		return u.check(wait, made)
	case ended(ctx) != nil:
		return storage.Info{}, fmt.Errorf("put %s: %w", u.name, ended(ctx))
	case tagOf(err, "conflict"), errors.Is(err, errTaken):
		return storage.Info{}, u.refused(err)
	case errors.Is(err, errSessionGone):
		return storage.Info{}, fmt.Errorf("put %s: %w", u.name, err)
	}
	return storage.Info{}, u.s.fail(wait, err, "put %s", u.name)
}

// finishOnce asks for the object. After an unclear attempt the service may have made it already, and then says that the
// session is gone, or that there is something in the way: what is there shows whether it is that.
func (u *upload) finishOnce(ctx context.Context, unclear bool) (*files.FileMetadata, error) {
	commit := files.NewCommitInfo(u.path)
	commit.Mode = &files.WriteMode{Tagged: sdk.Tagged{Tag: files.WriteModeAdd}}
	if u.cond.Version != "" {
		commit.Mode = &files.WriteMode{Tagged: sdk.Tagged{Tag: files.WriteModeUpdate}, Update: u.cond.Version}
	}
	commit.StrictConflict, commit.Mute, commit.ClientModified = true, true, &u.mark
	arg := files.NewUploadSessionFinishArg(files.NewUploadSessionCursor(u.id, uint64(u.size)), commit)
	made, err := u.s.files.UploadSessionFinishContext(ctx, arg, nil)
	gone := tagOf(err, "lookup_failed")
	if !unclear || !gone && !tagOf(err, "conflict") {
		if gone {
			return nil, &finalError{fmt.Errorf("%w (%w)", errSessionGone, err)}
		}
		return made, err
	}
	look, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	found, lookErr := u.s.head(look, u.path)
	switch {
	case lookErr == nil && found.ContentHash == u.hash.HexDigest() && time.Time(found.ClientModified).Equal(time.Time(u.mark)):
		return found, nil
	case lookErr != nil && !absent(lookErr):
		return nil, &finalError{errors.Join(err, lookErr)}
	case gone && lookErr == nil:
		return nil, &finalError{fmt.Errorf("%w (%w)", errTaken, err)}
	case gone:
		return nil, &finalError{fmt.Errorf("%w (%w)", errSessionGone, err)}
	}
	return nil, err
}

// check compares what was made with what was sent. What is wrong is taken away again.
func (u *upload) check(ctx context.Context, made *files.FileMetadata) (storage.Info, error) {
	if want := u.hash.HexDigest(); made.ContentHash != want || int64(made.Size) != u.size {
		undo, cancel := context.WithTimeout(ctx, settleFor)
		defer cancel()
		return storage.Info{}, errors.Join(
			fmt.Errorf("put %s: the service has %d bytes with the hash %s, not the %d with %s that were sent", u.name, made.Size, made.ContentHash, u.size, want),
			u.s.remove(undo, u.name, made.Rev))
	}
	return info(u.name, made), nil
}
