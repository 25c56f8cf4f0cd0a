package processor

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// errClosed answers calls on a chain that was closed.
var errClosed = errors.New("processor chain is closed")

// Order returns ps in the order in which they are applied, highest precedence first. Two processors of one name or of
// one precedence are an error, as is a processor without a name.
func Order(ps ...Processor) ([]Processor, error) {
	chain := slices.Clone(ps)
	slices.SortStableFunc(chain, func(a, b Processor) int { return cmp.Compare(b.Precedence(), a.Precedence()) })
	seen := make(map[string]bool, len(chain))
	for i, p := range chain {
		name := p.Name()
		switch {
		case name == "":
			return nil, fmt.Errorf("processor of precedence %d has no name", p.Precedence())
		case seen[name]:
			return nil, fmt.Errorf("processor %q appears twice", name)
		case i > 0 && chain[i-1].Precedence() == p.Precedence():
			return nil, fmt.Errorf("processors %q and %q share precedence %d", chain[i-1].Name(), name, p.Precedence())
		}
		seen[name] = true
	}
	return chain, nil
}

// Names returns the names of ps in the order given, as a manifest keeps them after Order.
func Names(ps []Processor) []string {
	names := make([]string, len(ps))
	for i, p := range ps {
		names[i] = p.Name()
	}
	return names
}

// WrapAll returns a writer whose bytes go through all of ps to w, the highest precedence first, whatever order ps has.
// Close completes the layers from the first to the last, stops at the first error and reports it, and does not close w;
// a second Close repeats the answer of the first. After a failed Write nothing is completed any more: Close reports that
// error and the stream stays detectably cut. Not safe for concurrent use; Write blocks as long as w does.
func WrapAll(ps []Processor, w io.Writer) (io.WriteCloser, error) {
	chain, err := Order(ps...)
	if err != nil {
		return nil, err
	}
	c := &chainWriter{first: w, names: Names(chain), layers: make([]io.WriteCloser, len(chain))}
	for i := len(chain) - 1; i >= 0; i-- {
		layer, err := chain[i].Wrap(c.first)
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", c.names[i], err)
		}
		c.first, c.layers[i] = layer, layer
	}
	return c, nil
}

// chainWriter writes to the first layer; layers are in the order in which they are closed.
type chainWriter struct {
	first  io.Writer
	names  []string
	layers []io.WriteCloser
	err    error // first error; every later call repeats it
	closed bool
}

func (c *chainWriter) Write(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	if c.closed {
		return 0, errClosed
	}
	n, err := c.first.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	c.err = err
	return n, err
}

func (c *chainWriter) Close() error {
	if c.closed || c.err != nil {
		c.closed = true
		return c.err
	}
	c.closed = true
	for i, layer := range c.layers {
		if err := layer.Close(); err != nil {
			c.err = fmt.Errorf("complete %s: %w", c.names[i], err)
			return c.err
		}
	}
	return nil
}
