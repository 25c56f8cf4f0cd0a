package s3

import "net/http"

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
