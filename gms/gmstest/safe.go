package gmstest

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms/certs"
)

// safe is what keeps strangers out of a world.
type safe struct {
	t         testing.TB
	authority *certs.Authority
	key       []byte
	pairs     map[string]certs.Pair
}

func newSafe(t testing.TB) *safe {
	t.Helper()
	a, err := certs.NewAuthority("test", 10*365*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return &safe{t: t, authority: a, key: []byte("a gossip key of thirty-two bytes"), pairs: map[string]certs.Pair{}}
}

// of is a node's certificate, made when it is asked for first.
func (s *safe) of(node string) *certs.Source {
	s.t.Helper()
	pair, made := s.pairs[node]
	if !made {
		var err error
		if pair, err = s.authority.Issue(certs.Name{Group: "test", Node: node}, 365*24*time.Hour); err != nil {
			s.t.Fatal(err)
		}
		s.pairs[node] = pair
	}
	text := func(b []byte) func() ([]byte, error) { return func() ([]byte, error) { return b, nil } }
	return &certs.Source{Certificate: text(pair.Certificate), Key: text(pair.Key), CA: text(s.authority.Certificate())}
}
