package mem

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// Registry keeps stores by name. Safe for concurrent use.
type Registry struct {
	mu     sync.Mutex
	stores map[string]*Storage
}

// NewRegistry returns a registry without stores.
func NewRegistry() *Registry { return &Registry{stores: make(map[string]*Storage)} }

// Open returns the store of that name, made at first use. All handles of a name are one store.
func (r *Registry) Open(name string) *Storage {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.stores[name]
	if !ok {
		s = New()
		r.stores[name] = s
	}
	return s
}

// Storage is one store.
type Storage struct {
	mu      sync.Mutex
	objects map[string]object
	counter uint64 // of versions
}

type object struct {
	data []byte // never changed
	info storage.Info
}

// New returns an empty store.
func New() *Storage { return &Storage{objects: make(map[string]object)} }

// Put implements storage.Storage.
func (s *Storage) Put(ctx context.Context, name string, r io.Reader, c storage.Condition) (storage.Info, error) {
	if err := s.check(name, c); err != nil {
		return storage.Info{}, err
	}
	var b bytes.Buffer
	if _, err := io.Copy(&b, &ctxReader{ctx: ctx, r: r}); err != nil {
		return storage.Info{}, fmt.Errorf("put %s: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ended(ctx); err != nil {
		return storage.Info{}, fmt.Errorf("put %s: %w", name, err)
	}
	if err := s.allows(name, c); err != nil {
		return storage.Info{}, err
	}
	s.counter++
	info := storage.Info{Name: name, Size: int64(b.Len()), Modified: time.Now().UTC(), Version: strconv.FormatUint(s.counter, 10)}
	s.objects[name] = object{data: b.Bytes(), info: info}
	return info, nil
}

// check is what can be known before the reader is read.
func (s *Storage) check(name string, c storage.Condition) error {
	if err := storage.ValidName(name); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allows(name, c)
}

// allows tells whether a Put of c may take effect now. The lock is held.
func (s *Storage) allows(name string, c storage.Condition) error {
	old, exists := s.objects[name]
	switch {
	case c.Version == "" && exists:
		return fmt.Errorf("put %s: %w", name, storage.ErrExists)
	case c.Version != "" && (!exists || old.info.Version != c.Version):
		return fmt.Errorf("put %s: %w", name, storage.ErrStale)
	case exists:
		return nil
	}
	for other := range s.objects {
		if strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/") {
			return fmt.Errorf("put %s: an object and a folder would share a name with %s: %w", name, other, storage.ErrPermanent)
		}
	}
	return nil
}

// Get implements storage.Storage.
func (s *Storage) Get(ctx context.Context, name string) (io.ReadCloser, storage.Info, error) {
	o, err := s.find(ctx, name)
	if err != nil {
		return nil, storage.Info{}, fmt.Errorf("get %w", err)
	}
	return io.NopCloser(&ctxReader{ctx: ctx, r: bytes.NewReader(o.data)}), o.info, nil
}

// Stat implements storage.Storage.
func (s *Storage) Stat(ctx context.Context, name string) (storage.Info, error) {
	o, err := s.find(ctx, name)
	if err != nil {
		return storage.Info{}, fmt.Errorf("stat %w", err)
	}
	return o.info, nil
}

func (s *Storage) find(ctx context.Context, name string) (object, error) {
	if err := storage.ValidName(name); err != nil {
		return object{}, err
	}
	if err := ended(ctx); err != nil {
		return object{}, fmt.Errorf("%s: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[name]
	if !ok {
		return object{}, fmt.Errorf("%s: %w", name, storage.ErrNotFound)
	}
	return o, nil
}

// List implements storage.Storage.
func (s *Storage) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		if err := storage.ValidPrefix(prefix); err != nil {
			yield(storage.Info{}, fmt.Errorf("list: %w", err))
			return
		}
		s.mu.Lock()
		objects := maps.Clone(s.objects)
		s.mu.Unlock()
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			if err := ended(ctx); err != nil {
				yield(storage.Info{}, fmt.Errorf("list %q: %w", prefix, err))
				return
			}
			if !storage.Shows(prefix, name) {
				continue
			}
			if !yield(objects[name].info, nil) {
				return
			}
		}
		if err := ended(ctx); err != nil {
			yield(storage.Info{}, fmt.Errorf("list %q: %w", prefix, err))
		}
	}
}

// Delete implements storage.Storage.
func (s *Storage) Delete(ctx context.Context, name string) error {
	if err := storage.ValidName(name); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	if err := ended(ctx); err != nil {
		return fmt.Errorf("delete %s: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, name)
	return nil
}

// ended returns why ctx has ended, or nil.
func ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// ctxReader belongs to one call; its ctx is that call's.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *ctxReader) Read(p []byte) (int, error) {
	if err := ended(r.ctx); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
