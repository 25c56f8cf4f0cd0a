// Package stall makes HTTP transports for the storages that are reached over a network.
//
//	base := stall.Transport(time.Minute)
//	client := &http.Client{Transport: base}
//	defer base.CloseIdleConnections()
//
// # Invariants
//
//   - No call waits for ever: a connection on which no byte moves for the time named is given up, and the Read or Write
//     that waits fails. Making a connection, and its TLS handshake, take at most 15 s.
//   - None is ended because it is long: an upload of hours goes on as long as bytes move, in either direction.
//   - Bodies come as they are: nothing is decompressed on the way.
//   - HTTP/1.1 only: one request has a connection for itself, so that one which stalls holds up no other.
package stall
