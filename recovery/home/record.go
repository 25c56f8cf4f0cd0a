package home

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// Record is what a seat's file says of its holder. It is written after the lock was taken and before the seal is read
// again, and cleared before the lock is given up: so a free lock with a record of the open generation means a death inside.
type Record struct {
	In         bool   `json:"in"`                  // the process is inside, or died there
	Generation uint64 `json:"generation"`          // that it opened
	ReadOnly   bool   `json:"read_only,omitempty"` // it promised to change nothing
	Label      string `json:"label,omitempty"`     // as given to Join
	Ident      Ident  `json:"ident"`               // of the process
	Parting    string `json:"parting,omitempty"`   // what the last holder said when it left
}

const recordSize = 1024

// readRecord reads a seat's record. Half a record is the zero Record: its writer died before it was inside.
func readRecord(r io.ReaderAt) (Record, error) {
	b := make([]byte, recordSize)
	n, err := r.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return Record{}, fmt.Errorf("read a seat's record: %w", err)
	}
	var rec Record
	if json.Unmarshal(bytes.TrimRight(b[:n], " \n"), &rec) != nil {
		return Record{}, nil
	}
	return rec, nil
}

func readRecordAt(path string) (Record, error) {
	f, err := os.Open(path)
	if err != nil {
		return Record{}, fmt.Errorf("read a seat's record: %w", err)
	}
	defer f.Close()
	return readRecord(f)
}

// write puts the record over the former one, in one write of fixed length.
func (r Record) write(w io.WriterAt) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if len(data) >= recordSize {
		return fmt.Errorf("write a seat's record: it has %d bytes, at most %d fit", len(data), recordSize-1)
	}
	b := bytes.Repeat([]byte{' '}, recordSize)
	copy(b, data)
	b[recordSize-1] = '\n'
	if _, err := w.WriteAt(b, 0); err != nil {
		return fmt.Errorf("write a seat's record: %w", NoRoom(err))
	}
	return nil
}

// String is for causes and logs.
func (r Record) String() string {
	if r.Label == "" {
		return r.Ident.String()
	}
	return fmt.Sprintf("%s (%v)", r.Label, r.Ident)
}
