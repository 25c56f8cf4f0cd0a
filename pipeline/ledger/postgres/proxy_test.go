package postgres

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/url"
	"sync"
	"testing"
)

// proxy stands between a ledger and the server. It can lose answers, be away, and make up process ids as a pooler does.
type proxy struct {
	listener net.Listener
	server   string
	dsn      string

	mu     sync.Mutex
	lose   bool     // the answer to what is sent next is lost, and its connection with it
	losing net.Conn // the connection whose answer that is, as the server's side has it
	away   bool     // new connections end at once
	silent bool     // what is sent, in either direction, goes nowhere
	pooler bool     // the announced process id is another
	lost   chan struct{}
	conns  map[net.Conn]bool
	work   sync.WaitGroup
}

func newProxy(t *testing.T, dsn string) *proxy {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("a DSN of the test server is no URL")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, server: u.Host, lost: make(chan struct{}, 1), conns: map[net.Conn]bool{}}
	u.Host = l.Addr().String()
	p.dsn = u.String()
	p.work.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.set(func() {
			for c := range p.conns {
				_ = c.Close()
			}
		})
		p.work.Wait()
	})
	return p
}

// set changes what the proxy does.
func (p *proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		away := p.away
		if !away {
			p.conns[client], p.conns[server] = true, true
		}
		p.mu.Unlock()
		if away {
			_, _ = client.Close(), server.Close()
			continue
		}
		p.work.Go(func() { p.copy(server, client, func([]byte) bool { return p.sent(server) }) })
		p.work.Go(func() { p.copy(client, server, func(b []byte) bool { return p.answer(server, b) }) })
	}
}

// copy passes bytes on until either side ends; look may change or refuse them.
func (p *proxy) copy(to, from net.Conn, look func([]byte) bool) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !look(buffer[:n]) {
				return
			}
			if p.isSilent() {
				continue
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *proxy) isSilent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.silent
}

// sent notes that a client sent something to server.
func (p *proxy) sent(server net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lose {
		p.lose, p.losing = false, server
	}
	return true
}

// answer looks at what the server says: false when it shall be lost.
func (p *proxy) answer(server net.Conn, b []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pooler {
		// BackendKeyData: 'K', length 12, process id, key.
		if i := bytes.Index(b, []byte{'K', 0, 0, 0, 12}); i >= 0 && i+9 <= len(b) {
			binary.BigEndian.PutUint32(b[i+5:], binary.BigEndian.Uint32(b[i+5:])+1)
		}
	}
	if p.losing == server {
		p.losing = nil
		p.lost <- struct{}{}
		return false
	}
	return true
}
