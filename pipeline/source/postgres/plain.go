package postgres

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/fencepost/fencepost/pipeline/source"
)

// plainEnd is in the last lines of every plain dump. A script without it may have been cut anywhere.
const plainEnd = "-- PostgreSQL database dump complete"

// knowsRestrict says whether a psql can be told to refuse every meta-command (since August 2025).
func knowsRestrict(version string) bool {
	since := map[int]int{13: 22, 14: 19, 15: 14, 16: 10, 17: 6}
	minor, listed := since[majorOf(version)]
	return majorOf(version) > 17 || listed && minorOf(version) >= minor
}

// plainTool finds the psql for a plain script, and refuses choices that only an archive offers.
func (s *Source) plainTool(ctx context.Context, need int, c source.RestoreChoices, doing string) (tool, error) {
	if c.NoOwner || c.NoPrivileges || c.NoSubscriptions || c.NoTablespaces || c.Jobs > 1 || c.Partial() {
		return tool{}, s.errorf(problem{what: "a plain script can only be restored as it is", hint: "edit the script, or restore all of it and drop what is not wanted"}, "%s", doing)
	}
	t, err := s.findTool(ctx, "psql", need)
	if err != nil {
		return t, err
	}
	if !knowsRestrict(t.version) {
		return t, s.errorf(problem{what: "psql " + t.version + " cannot be kept from running commands that a script may carry", hint: "update the PostgreSQL client programs"}, "%s", doing)
	}
	return t, nil
}

// readPlain gives a plain script to a psql that refuses every meta-command. The last lines are held back until from has
// ended well; a psql that is killed before has nobody's name on what it did, since the database is new.
func (r *restore) readPlain(ctx context.Context, from io.Reader) (err error) {
	p, err := r.src.startPsql(r.psql, r.at, r.prepared.Database, tag(r.attempt))
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			p.kill()
			r.src.afterFailedRestore(ctx, r.attempt, r.at)
		}
	}()
	rest, err := r.passScript(ctx, p, from)
	if err != nil {
		return err
	}
	if _, err = p.ask(ctx, string(rest), "1"); err == nil {
		err = p.finish(ctx)
	}
	if err != nil && ctx.Err() == nil {
		return r.src.errorf(p.why(), "%s", r.doing())
	}
	return err
}

// passScript passes a script on to psql, but for its last lines, which it returns.
func (r *restore) passScript(ctx context.Context, p *psql, from io.Reader) ([]byte, error) {
	defer terminateWith(ctx, p.child)()
	reader := &errReader{r: from}
	script := bufio.NewReaderSize(reader, copyBuffer)
	key, head, err := plainHead(script)
	if err == nil {
		begin, _ := script.Peek(plainBegin) // a short one is judged as what it is
		err = ofOneDatabase(slices.Concat(head, begin))
	}
	if err == nil {
		held := &holdBack{w: p.in}
		_, werr := io.WriteString(p.in, `\restrict `+rand.Text()+"\n")
		if werr == nil {
			_, werr = held.Write(head)
		}
		if werr == nil {
			_, werr = io.CopyBuffer(struct{ io.Writer }{held}, struct{ io.Reader }{script}, make([]byte, copyBuffer))
		}
		if werr != nil && reader.err == nil {
			p.kill()
			return nil, errors.Join(ctx.Err(), r.src.errorf(p.why(), "%s", r.doing()))
		}
		head, err = plainTail(held.held, key)
	}
	if reader.err != nil {
		err = reader.err
	}
	if err != nil {
		p.kill() // before its input ends
		return nil, r.src.badStream(ctx, err, r.doing())
	}
	return head, nil
}

// plainHead reads the comments that a plain dump begins with. pg_dump's own \restrict among them is left out: psql is
// restricted by a key that no script knows.
func plainHead(script *bufio.Reader) (key, head []byte, err error) {
	for {
		line, err := script.Peek(1)
		if err != nil || (line[0] != '-' && line[0] != '\n' && line[0] != '\r' && line[0] != '\\') {
			return key, head, nil // the end, or the first statement
		}
		if line, err = script.ReadSlice('\n'); err != nil {
			return nil, nil, fmt.Errorf("it is no plain dump (its first lines are %.60q)", append(head, line...))
		}
		if rest, ok := bytes.CutPrefix(line, []byte(`\restrict `)); ok && key == nil {
			key = bytes.Clone(bytes.TrimSpace(rest))
			continue
		}
		if head = append(head, line...); line[0] == '\\' || len(head) > heldBack {
			return key, head, nil // psql will refuse the command, or it is SQL that begins with a minus
		}
	}
}

// plainBegin is how much of a script's beginning is looked at: more than pg_dump writes before what it makes.
const plainBegin = 8 << 10

// ofOneDatabase refuses archives, and scripts that make databases or roles, by the comments that pg_dump and pg_dumpall write
// over that: it would be done before their \connect is refused, and outside of the database that they are restored into.
func ofOneDatabase(begin []byte) error {
	if bytes.HasPrefix(begin, []byte(archiveMagic)) {
		return errors.New("it is no plain dump: it is an archive of pg_dump")
	}
	for line := range bytes.Lines(begin) {
		line = bytes.TrimSpace(line)
		switch {
		case bytes.Equal(line, []byte("-- PostgreSQL database cluster dump")):
			return errors.New("it is a script of a whole server: dump one database (pg_dump)")
		case bytes.HasPrefix(line, []byte("-- Name: ")) && bytes.Contains(line, []byte("; Type: DATABASE; ")):
			return errors.New("it is a script that makes its own database: dump without --create (-C)")
		}
	}
	return nil
}

// plainTail checks that a plain dump ends as it should, and leaves out the end of its own restriction.
func plainTail(held, key []byte) ([]byte, error) {
	at := bytes.LastIndex(held, []byte("\n"+plainEnd))
	if at < 0 {
		return nil, fmt.Errorf("%w: the script lacks the line %q that ends a plain dump", source.ErrIncomplete, plainEnd)
	}
	for line := range bytes.Lines(held[at:]) {
		line = bytes.TrimSpace(line)
		rest, ours := bytes.CutPrefix(line, []byte(`\unrestrict `))
		if len(line) > 0 && !bytes.HasPrefix(line, []byte("--")) && (!ours || !bytes.Equal(rest, key)) {
			return nil, errors.New("the script goes on after its end")
		}
	}
	return held[:at+1], nil
}
