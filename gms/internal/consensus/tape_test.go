package consensus

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
)

// tape is an FSM that remembers what it has applied.
type tape struct {
	mu       sync.Mutex
	entries  [][]byte
	restored int
}

func (f *tape) Apply(index uint64, data []byte) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries = append(f.entries, bytes.Clone(data))
	return fmt.Sprintf("%s@%d", data, index)
}

func (f *tape) Snapshot() (io.WriterTo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return tapeSnapshot(append([][]byte(nil), f.entries...)), nil
}

func (f *tape) Restore(r io.Reader) error {
	var entries [][]byte
	for {
		var n uint32
		if err := binary.Read(r, binary.BigEndian, &n); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(r, b); err != nil {
			return err
		}
		entries = append(entries, b)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries, f.restored = entries, f.restored+1
	return nil
}

func (f *tape) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return string(bytes.Join(f.entries, []byte(",")))
}

func (f *tape) restores() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.restored
}

type tapeSnapshot [][]byte

func (s tapeSnapshot) WriteTo(w io.Writer) (int64, error) {
	for _, e := range s {
		if err := binary.Write(w, binary.BigEndian, uint32(len(e))); err != nil {
			return 0, err
		}
		if _, err := w.Write(e); err != nil {
			return 0, err
		}
	}
	return 0, nil
}
