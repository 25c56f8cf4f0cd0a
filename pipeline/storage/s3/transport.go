package s3

import (
	"context"
	"net"
	"net/http"
	"time"
)

// newTransport returns a transport of HTTP/1.1 connections that are given up when they stall.
func newTransport(stall time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: min(stall, 15*time.Second), KeepAlive: 15 * time.Second}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &stalling{Conn: c, after: stall}, nil
		},
		TLSHandshakeTimeout: min(stall, 15*time.Second),
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     min(stall, 30*time.Second),
		DisableCompression:  true, // an object is what was put, not what a client makes of it
	}
}

// closing ends the connection of a request with a condition: some servers answer that it does not hold without reading
// the body, and then take the body for the next request.
type closing struct{ http.RoundTripper }

func (c closing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPut && (r.Header.Get("If-None-Match") != "" || r.Header.Get("If-Match") != "") {
		r = r.Clone(r.Context())
		r.Close = true
	}
	return c.RoundTripper.RoundTrip(r)
}

// stalling is a connection on which a Read or Write fails when no byte has moved for the time named. A Write moves the
// deadline of a Read that waits, because that one waits for the answer to what is being written.
type stalling struct {
	net.Conn
	after time.Duration
}

func (c *stalling) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.after)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *stalling) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.after)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
