package accounts

import (
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/kept"
)

// Prefixes of what a group has that is made anew from what it kept. Sessions end with it.
var lastingPrefixes = []string{userKey(""), tokenKey("")}

// LastingPrefixes are where records lie that Lasting knows.
func LastingPrefixes() []string { return append([]string{}, lastingPrefixes...) }

// Lasting is what of a record is to outlive its group: users and tokens, without when they were used last and how often
// somebody failed. ok is false for all others, and for what this version does not understand.
func Lasting(r kept.Record) (value []byte, ok bool) {
	switch {
	case strings.HasPrefix(r.Key, userKey("")):
		u, err := userOf(r)
		if err != nil {
			return nil, false
		}
		u.Failures, u.LockedUntil, u.LastLogIn = 0, time.Time{}, time.Time{}
		return kept.Put(r.Key, u, r.Version).Value, true
	case strings.HasPrefix(r.Key, tokenKey("")):
		t, err := tokenOf(r)
		if err != nil {
			return nil, false
		}
		t.LastUsed = time.Time{}
		return kept.Put(r.Key, t, r.Version).Value, true
	}
	return nil, false
}
