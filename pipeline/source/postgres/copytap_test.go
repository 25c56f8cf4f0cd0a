package postgres

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/fencepost/fencepost/pipeline/source"
)

// tap passes a server's connections on, and keeps what the clients send.
type tap struct {
	addr string

	mu   sync.Mutex
	sent []*bytes.Buffer // by connection
}

func newTap(t *testing.T, server string) *tap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{addr: l.Addr().String()}
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.serve(client, server) })
		}
	})
	return p
}

func (p *tap) serve(client net.Conn, server string) {
	defer client.Close()
	up, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	kept := &bytes.Buffer{}
	p.mu.Lock()
	p.sent = append(p.sent, kept)
	p.mu.Unlock()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, up)
		_ = client.Close()
	})
	_, _ = io.Copy(io.MultiWriter(p.keeps(kept), up), client)
	_ = up.Close()
	back.Wait()
}

// keeps guards a buffer.
func (p *tap) keeps(b *bytes.Buffer) io.Writer {
	return writerFunc(func(data []byte) (int, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return b.Write(data)
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// copied is all that was sent as rows of a COPY.
func (p *tap) copied() (rows []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.sent {
		all := b.Bytes()
		if len(all) < 4 {
			continue
		}
		all = all[min(int(binary.BigEndian.Uint32(all)), len(all)):] // the start-up message has no type
		for len(all) >= 5 {
			end := min(1+int(binary.BigEndian.Uint32(all[1:])), len(all))
			if all[0] == 'd' {
				rows = append(rows, all[5:end]...)
			}
			all = all[end:]
		}
	}
	return rows
}

// A stream that breaks within the rows of a table: nothing is sent after them that would become a row, neither a ROLLBACK
// nor anything else, and no row of the broken stream stays.
func TestNothingIsSentIntoABrokenCopy(t *testing.T) {
	srv := pg.Server(t)
	s := newSource(t, Config{DSN: srv.Database(t)})
	srv.Exec(t, s.Database(), `CREATE TABLE words AS SELECT md5(i::text) AS w FROM generate_series(1, 50000) i`)
	b := takeBackup(t, s, first)
	data := b.parts[source.PartData]
	srv.Exec(t, s.Database(), `DELETE FROM words WHERE w < '8'`)
	before := userPrint(t, s.Database())
	server := "127.0.0.1:" + query(t, "postgres", `current_setting('port')`)
	boom := errors.New("the storage is gone")
	for name, options := range map[string]source.RestoreOptions{
		"in place":            over(b, s.Database()),
		"into a new database": {Target: "broken copy", Info: b.info},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTap(t, server)
			through := newSource(t, Config{DSN: strings.Replace(srv.DSN(s.Database()), server, p.addr, 1)})
			r := begun(t, through, first, options)
			err := r.Read(t.Context(), source.PartData, io.MultiReader(bytes.NewReader(data[:len(data)/2]), iotest.ErrReader(boom)))
			if !errors.Is(err, boom) {
				t.Errorf("read: %v", err)
			}
			if err := r.Abort(); err != nil {
				t.Error(err)
			}
			rows := p.copied()
			if len(rows) == 0 {
				t.Fatal("no row was sent: this test shows nothing")
			}
			for i, line := range strings.Split(string(rows), "\n") {
				if strings.Trim(line, "0123456789abcdef") != "" && line != `\.` {
					t.Errorf("row %d is %q", i, line)
				}
			}
			same(t, before, userPrint(t, s.Database()))
			nothingLeft(t, first)
		})
	}
	noStray(t)
}
