package app

import (
	"testing"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// While a host app leads, which does nothing for the daemons, one of them acts for the group, and a drained leader hands
// over to a daemon: a removal went on for ever when a host app led, and a drain when one was the first voter.
func TestHostAppsDoNotActForTheGroup(t *testing.T) {
	member := func(name string, daemon bool, more func(*gms.MemberDetail)) gms.MemberDetail {
		m := gms.MemberDetail{Member: signals.Member{Node: name}, Voter: true}
		if daemon {
			m.Details = map[string][]byte{versionDetail: nil}
		}
		if more != nil {
			more(&m)
		}
		return m
	}
	leads := func(m *gms.MemberDetail) { m.Leader = true }
	fed := func(m *gms.MemberDetail) { m.Fed, m.Voter = true, false }
	suspected := func(m *gms.MemberDetail) { m.Suspected = true }
	stops := func(m *gms.MemberDetail) { m.Details[stoppingDetail] = []byte("yes") }
	for name, c := range map[string]struct {
		members            []gms.MemberDetail
		speaker, successor string // of n1
	}{
		"a daemon leads":       {[]gms.MemberDetail{member("h1", false, nil), member("n1", true, nil), member("n2", true, leads)}, "n2", "n2"},
		"a host app leads":     {[]gms.MemberDetail{member("h1", false, leads), member("n2", true, nil), member("n1", true, nil)}, "n1", "n2"},
		"nobody leads":         {[]gms.MemberDetail{member("n1", true, suspected), member("n2", true, fed), member("n3", true, nil)}, "n3", "n3"},
		"host apps only":       {[]gms.MemberDetail{member("h1", false, leads), member("h2", false, nil)}, "", ""},
		"the successor stops":  {[]gms.MemberDetail{member("n1", true, leads), member("n2", true, stops), member("n3", true, nil)}, "n1", "n3"},
		"the others are apart": {[]gms.MemberDetail{member("n1", true, leads), member("n2", true, fed), member("n3", true, suspected)}, "n1", ""},
	} {
		if got := speaker(c.members); got != c.speaker {
			t.Errorf("%s: %q acts for the group, want %q", name, got, c.speaker)
		}
		if got := successorAmong(c.members, "n1", func(string) bool { return false }); got != c.successor {
			t.Errorf("%s: %q succeeds n1, want %q", name, got, c.successor)
		}
	}
}
