package postgres

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// psql is a running psql that is given SQL piece by piece. It stops at the first error. Not safe for concurrent use.
type psql struct {
	child *child
	in    *os.File
	mark  string      // opens the lines of its output that are for us
	marks chan string // those lines, without the mark; closed when its output ends
	shut  sync.Once
}

// startPsql starts psql on a database. The caller ends it with finish or kill.
func (s *Source) startPsql(t tool, at address, database, name string) (*psql, error) {
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	stdout, out, err := os.Pipe()
	if err != nil {
		_, _ = in.Close(), stdin.Close()
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	p := &psql{in: stdin, mark: "fencepost " + rand.Text() + " ", marks: make(chan string, 1)}
	p.child, err = startChild(command{
		path: t.path, env: s.where.environ(), stdin: in, stdout: out,
		args: []string{"--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--set=ON_ERROR_STOP=1", "--no-password", "--file=-",
			"--dbname=" + s.where.writing().conninfo(at, database, name)},
	}, s.cfg.Grace)
	_, _ = in.Close(), out.Close() // the child has its own
	if err != nil {
		_, _ = stdin.Close(), stdout.Close()
		return nil, err
	}
	go p.listen(stdout) // ends with the child's output, which kill and finish wait for
	return p, nil
}

// listen passes on the lines that are marked, and throws the others away.
func (p *psql) listen(stdout *os.File) {
	defer close(p.marks)
	defer func() { _ = stdout.Close() }()
	lines := bufio.NewReaderSize(stdout, 64<<10)
	for {
		line, err := lines.ReadSlice('\n') // a longer line is somebody else's, and comes in pieces
		if text, ours := strings.CutPrefix(strings.TrimSuffix(string(line), "\n"), p.mark); ours {
			p.marks <- text // nobody asks twice without having taken the first answer
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// errPsqlEnded says that psql is gone; why is in its exit code and messages.
var errPsqlEnded = errors.New("psql ended")

// ask has psql run some SQL, then answers with one text, the value of an expression. It returns when all SQL that was
// sent before has been run without an error. The end of ctx ends psql.
func (p *psql) ask(ctx context.Context, sql, expression string) (string, error) {
	defer terminateWith(ctx, p.child)()
	_, err := io.WriteString(p.in, sql+"\nSELECT "+literal(p.mark)+" || ("+expression+")::text;\n")
	if err != nil {
		p.kill()
		return "", errors.Join(errPsqlEnded, ctx.Err())
	}
	text, open := <-p.marks
	if !open {
		p.kill()
		return "", errors.Join(errPsqlEnded, ctx.Err())
	}
	return text, nil
}

// finish ends psql's input and returns how it ended.
func (p *psql) finish(ctx context.Context) error {
	defer terminateWith(ctx, p.child)()
	p.closeInput()
	for range p.marks {
	}
	return p.child.wait()
}

// kill ends psql at once. Its input stays open until it is gone: it must never take a piece for the whole.
func (p *psql) kill() {
	p.child.kill()
	p.closeInput()
	for range p.marks {
	}
}

func (p *psql) closeInput() { p.shut.Do(func() { _ = p.in.Close() }) }

// why says why psql ended, after kill or finish.
func (p *psql) why() problem {
	status := "a lost connection"
	if err := p.child.wait(); err != nil {
		status = err.Error()
	}
	return explainOutput(p.child.name, p.child.stderr.text(), status)
}
