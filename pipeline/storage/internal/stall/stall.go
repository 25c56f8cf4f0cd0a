package stall

import (
	"context"
	"net"
	"net/http"
	"time"
)

// Transport returns a transport of HTTP/1.1 connections on which a Read or Write fails when no byte has moved for after.
func Transport(after time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: min(after, 15*time.Second), KeepAlive: 15 * time.Second}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &conn{Conn: c, after: after}, nil
		},
		TLSHandshakeTimeout: min(after, 15*time.Second),
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     min(after, 30*time.Second),
		DisableCompression:  true, // an object is what was put, not what a client makes of it
	}
}

// conn is a connection on which a Read or Write fails when no byte has moved for the time named. A Write moves the
// deadline of a Read that waits, because that one waits for the answer to what is being written.
type conn struct {
	net.Conn
	after time.Duration
}

func (c *conn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.after)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *conn) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.after)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
