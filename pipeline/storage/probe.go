package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// ProbeOptions say how a storage is tried.
type ProbeOptions struct {
	// Long is how many bytes the source of the broken Put yields before it fails: more than one part, so that an upload
	// was begun. Default 1.
	Long int64
	// AppendOnly: the credentials may not delete. Then being refused is what the probe wants, and what it has written stays.
	AppendOnly bool
	// Clean bounds the removal of what the probe has written, whatever becomes of its context. Default 30 s.
	Clean time.Duration
}

// ProbeStep is what became of one thing that backups need.
type ProbeStep struct {
	Name string // write, condition, read, list, abort, delete, clean
	Took time.Duration
	Err  error // nil: as it should be
}

// Probe tries all that backups need of a storage, under a name of its own that nobody else uses, and cleans up: write,
// that a second writer is refused (condition), read, list, that a Put whose source fails leaves nothing (abort), delete.
// It ends at the first step that fails; the last one, clean, is always made. The caller has made sure that it may write
// there. left are the objects that it could not remove.
func Probe(ctx context.Context, s Storage, o ProbeOptions) (steps []ProbeStep, left []string) {
	if o.Clean <= 0 {
		o.Clean = 30 * time.Second
	}
	p := &probe{s: s, o: o, folder: ProbePrefix + newID()}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{{"write", p.write}, {"condition", p.condition}, {"read", p.read}, {"list", p.list}, {"abort", p.abort}, {"delete", p.delete}} {
		began := time.Now()
		err := step.do(ctx)
		steps = append(steps, ProbeStep{step.name, time.Since(began), err})
		if err != nil {
			break
		}
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Clean)
	defer cancel()
	began := time.Now()
	left, err := p.clean(clean)
	return append(steps, ProbeStep{"clean", time.Since(began), err}), left
}

// ProbePrefix begins the names of all that a Probe writes.
const ProbePrefix = "storage-test-"

// probe is one probe of a storage.
type probe struct {
	s      Storage
	o      ProbeOptions
	folder string
	info   Info // of what was written
}

const (
	probeText  = "written by a test of this storage; may be removed\n"
	probeOther = "a second writer was not refused\n"
)

func (p *probe) name() string { return p.folder + "/object" }

func (p *probe) write(ctx context.Context) (err error) {
	p.info, err = p.s.Put(ctx, p.name(), Bytes([]byte(probeText)), Condition{})
	return err
}

// condition is what a commit stands on. A server that takes no notice of conditions does not say so.
func (p *probe) condition(ctx context.Context) error {
	_, err := p.s.Put(ctx, p.name(), Bytes([]byte(probeOther)), Condition{})
	switch {
	case err == nil:
		return fmt.Errorf("an object that is there was written over by one that must be the first of its name: %w", ErrPermanent)
	case !errors.Is(err, ErrExists):
		return err
	}
	_, err = p.s.Put(ctx, p.name(), Bytes([]byte(probeOther)), Condition{Version: "0" + p.info.Version})
	switch {
	case err == nil:
		return fmt.Errorf("an object was replaced although it is not of the version that was named: %w", ErrPermanent)
	case !errors.Is(err, ErrStale):
		return err
	}
	return nil
}

func (p *probe) read(ctx context.Context) error {
	r, info, err := p.s.Get(ctx, p.name())
	if err != nil {
		return err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, ownerMaxSize))
	switch {
	case err != nil:
		return err
	case string(text) != probeText || info.Size != int64(len(probeText)):
		return fmt.Errorf("what was read is not what was written (%d bytes, said to be %d): %w", len(text), info.Size, ErrPermanent)
	}
	return nil
}

func (p *probe) list(ctx context.Context) error {
	names, err := p.names(ctx)
	if err == nil && !slices.Equal(names, []string{p.name()}) {
		err = fmt.Errorf("the listing shows %d objects, want the one that was written: %w", len(names), ErrPermanent)
	}
	return err
}

func (p *probe) names(ctx context.Context) (names []string, err error) {
	for info, err := range p.s.List(ctx, p.folder) {
		if err != nil {
			return names, err
		}
		names = append(names, info.Name)
	}
	return names, nil
}

var errProbe = errors.New("this source fails on purpose")

// abort has a source fail in the middle.
func (p *probe) abort(ctx context.Context) error {
	name := p.folder + "/cut"
	_, err := p.s.Put(ctx, name, &failingSource{left: max(p.o.Long, 1)}, Condition{})
	if !errors.Is(err, errProbe) {
		return fmt.Errorf("a source that fails: want its error, got %w", errors.Join(err, ErrPermanent))
	}
	_, err = p.s.Stat(ctx, name)
	switch {
	case err == nil:
		return fmt.Errorf("a source that failed left an object: %w", ErrPermanent)
	case !errors.Is(err, ErrNotFound):
		return err
	}
	return nil
}

// failingSource yields left bytes, then errProbe.
type failingSource struct{ left int64 }

func (f *failingSource) Read(b []byte) (int, error) {
	if f.left == 0 {
		return 0, errProbe
	}
	n := int(min(int64(len(b)), f.left))
	clear(b[:n])
	f.left -= int64(n)
	return n, nil
}

func (p *probe) delete(ctx context.Context) error {
	err := p.s.Delete(ctx, p.name())
	if p.o.AppendOnly {
		if err == nil {
			return fmt.Errorf("the credentials may delete, though they are said to be append-only: %w", ErrPermanent)
		}
		if errors.Is(err, ErrPermanent) {
			return nil
		}
		return err
	}
	if err != nil {
		return err
	}
	if _, err = p.s.Stat(ctx, p.name()); errors.Is(err, ErrNotFound) {
		return nil
	}
	return errors.Join(fmt.Errorf("an object that was deleted is still there: %w", ErrPermanent), err)
}

// clean removes all that is left, and returns what stays.
func (p *probe) clean(ctx context.Context) (left []string, err error) {
	names, err := p.names(ctx)
	if err != nil || p.o.AppendOnly {
		return names, err
	}
	for _, name := range names {
		if one := p.s.Delete(ctx, name); one != nil {
			left, err = append(left, name), errors.Join(err, one)
		}
	}
	return left, err
}
