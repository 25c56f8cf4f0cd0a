package processor

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Registry finds processors by the name that a manifest keeps. It is a value, filled once and then only read, so it may
// be shared. The zero value knows none.
type Registry map[string]Processor

// NewRegistry returns a registry of ps. Two processors of one name are an error; equal precedences are not, since a
// registry may know alternatives of which a chain uses one.
func NewRegistry(ps ...Processor) (Registry, error) {
	r := make(Registry, len(ps))
	for _, p := range ps {
		name := p.Name()
		if name == "" {
			return nil, fmt.Errorf("processor of precedence %d has no name", p.Precedence())
		}
		if _, ok := r[name]; ok {
			return nil, fmt.Errorf("processor %q appears twice", name)
		}
		r[name] = p
	}
	return r, nil
}

// Find returns the processor of a name; an unknown one is an error that lists what is known.
func (r Registry) Find(name string) (Processor, error) {
	if p, ok := r[name]; ok {
		return p, nil
	}
	known := "none"
	if len(r) > 0 {
		known = strings.Join(slices.Sorted(maps.Keys(r)), ", ")
	}
	return nil, fmt.Errorf("unknown processor %q (known: %s)", name, known)
}

// Chain returns the processors of names, in the order in which they are applied. Unknown or repeated names and shared
// precedences are errors.
func (r Registry) Chain(names []string) ([]Processor, error) {
	ps := make([]Processor, len(names))
	for i, name := range names {
		p, err := r.Find(name)
		if err != nil {
			return nil, err
		}
		ps[i] = p
	}
	return Order(ps...)
}

// UnwrapAll returns a reader of the original bytes of a stream to which names were applied in this order (the order of
// Names); they are inverted last to first. It trusts the order given, because the manifest says what was done, and
// refuses unknown or repeated names. Close releases all layers, reports the first error and does not close r.
func (r Registry) UnwrapAll(names []string, rd io.Reader) (io.ReadCloser, error) {
	c := &chainReader{top: rd}
	for i := len(names) - 1; i >= 0; i-- {
		layer, err := r.unwrap(names, i, c.top)
		if err != nil {
			_ = c.Close() // the error that counts is err
			return nil, err
		}
		c.top = layer
		c.layers = append(c.layers, layer)
	}
	return c, nil
}

func (r Registry) unwrap(names []string, i int, rd io.Reader) (io.ReadCloser, error) {
	p, err := r.Find(names[i])
	if err != nil {
		return nil, err
	}
	if slices.Contains(names[:i], names[i]) {
		return nil, fmt.Errorf("processor %q appears twice", names[i])
	}
	layer, err := p.Unwrap(rd)
	if err != nil {
		return nil, fmt.Errorf("start the inverse of %s: %w", names[i], err)
	}
	return layer, nil
}

// chainReader reads from the last layer that was added, which is the source's side.
type chainReader struct {
	top    io.Reader
	layers []io.ReadCloser
	closed bool
	err    error
}

func (c *chainReader) Read(p []byte) (int, error) {
	if c.closed {
		return 0, errClosed
	}
	return c.top.Read(p)
}

// Close goes from the source's side to the object's side, so that no layer loses the one it reads from.
func (c *chainReader) Close() error {
	if c.closed {
		return c.err
	}
	c.closed = true
	for _, layer := range slices.Backward(c.layers) {
		if err := layer.Close(); err != nil && c.err == nil {
			c.err = err
		}
	}
	return c.err
}
