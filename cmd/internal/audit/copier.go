package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Line is one line of a copy: a record, or the records that the node has missed.
type Line struct {
	Record *api.AuditRecord `json:"record,omitempty"`
	Missed *Missed          `json:"missed,omitempty"`
}

// Missed are records that the group did not keep any more when the node came back.
type Missed struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// Copier keeps a node's copy of the trail: a file of Lines, which only grows. One goroutine uses it.
type Copier struct {
	trail *Trail
	file  *os.File
	also  func(line []byte) // the system's log; nil: none
	last  uint64            // that is in the file
	size  int64             // of the file, in whole lines
}

// OpenCopy opens the copy at path, made (0600) when it is missing. A last line that was cut, by a crash, is cut off. also
// gets each line beside the file; nil: nobody.
func OpenCopy(t *Trail, path string, also func(line []byte)) (*Copier, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the copy of the audit trail: %w", err)
	}
	c := &Copier{trail: t, file: f, also: also}
	if err := c.resume(); err != nil {
		return nil, errors.Join(fmt.Errorf("read the copy of the audit trail %s: %w", path, err), f.Close())
	}
	return c, nil
}

// resume finds the last whole line.
func (c *Copier) resume() error {
	var whole int64
	r := bufio.NewReader(c.file)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		var l Line
		if err := json.Unmarshal(line, &l); err != nil {
			return fmt.Errorf("at byte %d: %w", whole, err)
		}
		whole += int64(len(line))
		c.last = l.last()
	}
	c.size = whole
	return c.cut()
}

// cut removes what is no whole line, at the end.
func (c *Copier) cut() error {
	if err := c.file.Truncate(c.size); err != nil {
		return err
	}
	_, err := c.file.Seek(c.size, io.SeekStart)
	return err
}

func (l Line) last() uint64 {
	switch {
	case l.Record != nil:
		return l.Record.Seq
	case l.Missed != nil:
		return l.Missed.To
	}
	return 0
}

// CatchUp copies what the copy does not have yet, of what this node knows: it asks nobody. What was copied is on the disk when
// it returns.
func (c *Copier) CatchUp() error {
	end := c.trail.store.Local(headKey)
	if end.Version == 0 {
		return nil
	}
	var last head
	if err := json.Unmarshal(end.Value, &last); err != nil {
		return fmt.Errorf("read the end of the audit trail: %w", err)
	}
	wrote := false
	missed := c.last + 1 // the first that is not kept any more
	for seq := c.last + 1; seq <= last.Seq; seq++ {
		r := c.trail.store.Local(recordKey(seq))
		if r.Version == 0 {
			continue
		}
		if err := c.copy(r.Value, missed, seq); err != nil {
			return err
		}
		missed, wrote = seq+1, true
	}
	if !wrote {
		return nil
	}
	if err := c.file.Sync(); err != nil {
		return fmt.Errorf("write the copy of the audit trail: %w", err)
	}
	return nil
}

// copy writes a record, and before it those that were missed.
func (c *Copier) copy(text []byte, missed, seq uint64) error {
	if missed < seq {
		if err := c.write(Line{Missed: &Missed{missed, seq - 1}}); err != nil {
			return err
		}
	}
	var r api.AuditRecord
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("read the audit trail: record %d: %w", seq, err)
	}
	return c.write(Line{Record: &r})
}

func (c *Copier) write(l Line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("encode a line of the audit trail: %w", err)
	}
	n, err := c.file.Write(append(text, '\n'))
	if err != nil {
		return fmt.Errorf("write the copy of the audit trail: %w", errors.Join(err, c.cut()))
	}
	c.last, c.size = l.last(), c.size+int64(n)
	if c.also != nil {
		c.also(text)
	}
	return nil
}

// Close closes the file.
func (c *Copier) Close() error { return c.file.Close() }

// CheckCopy reads the copy at path and tells whether its records are whole; what was missed is a gap, and no fault.
func CheckCopy(path string) (api.AuditCheck, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return api.AuditCheck{}, &api.Error{Code: api.CodeNotFound, Message: "there is no copy of the audit trail at " + path}
	}
	if err != nil {
		return api.AuditCheck{}, fmt.Errorf("open the copy of the audit trail: %w", err)
	}
	defer f.Close()
	return checkLines(f)
}

func checkLines(from io.Reader) (api.AuditCheck, error) {
	out := api.AuditCheck{Whole: true}
	var stretch []api.AuditRecord // the last two records that follow each other
	d := json.NewDecoder(from)
	for {
		var l Line
		err := d.Decode(&l)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			out.Whole, out.Problem = false, "after record "+fmt.Sprint(out.Last)+": "+err.Error()
			return out, nil
		}
		if l.Record == nil {
			stretch = nil
			out.Last = l.last()
			continue
		}
		stretch = append(stretch, *l.Record)
		stretch = stretch[max(0, len(stretch)-2):]
		if err := Check(stretch); err != nil {
			out.Whole, out.Problem = false, err.Error()
			return out, nil
		}
		out.Records++
		if out.First == 0 {
			out.First = l.Record.Seq
		}
		out.Last, out.Hash = l.Record.Seq, l.Record.Hash
	}
}
