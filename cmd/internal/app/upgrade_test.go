package app

import (
	"strings"
	"testing"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// TestWhatStandsAgainstFinalizing: a group that writes protocol 4, in which n1 reads 5.
func TestWhatStandsAgainstFinalizing(t *testing.T) {
	member := func(node string, reads uint32) gms.MemberDetail {
		return gms.MemberDetail{Member: signals.Member{Node: node, Details: map[string][]byte{versionDetail: []byte("v" + node)}}, Protocol: reads}
	}
	servers := []gms.Server{{Node: "n1"}, {Node: "n2"}, {Node: "n3"}}
	for name, c := range map[string]struct {
		members []gms.MemberDetail
		without []string
		next    uint32
		want    string
	}{
		"nobody reads more":     {[]gms.MemberDetail{member("n1", 4), member("n2", 4)}, nil, 4, ""},
		"all read more":         {[]gms.MemberDetail{member("n3", 5), member("n1", 5), member("n2", 5)}, nil, 5, ""},
		"two steps":             {[]gms.MemberDetail{member("n3", 6), member("n1", 6), member("n2", 6)}, nil, 5, ""},
		"one is behind":         {[]gms.MemberDetail{member("n1", 5), member("n2", 4), member("n3", 5)}, nil, 5, "n2 runs vn2, which reads protocols up to 4"},
		"one is away":           {[]gms.MemberDetail{member("n1", 5), member("n2", 5)}, nil, 5, "n3 is not here"},
		"one may be away":       {[]gms.MemberDetail{member("n1", 5), member("n2", 5)}, []string{"n3"}, 5, ""},
		"none may be behind":    {[]gms.MemberDetail{member("n1", 5), member("n2", 4), member("n3", 5)}, []string{"n2"}, 5, "n2 runs vn2, which reads protocols up to 4"},
		"one beside the log is": {[]gms.MemberDetail{member("n1", 5), member("n2", 5), member("n3", 5), member("n4", 4)}, nil, 5, "n4 runs vn4, which reads protocols up to 4"},
	} {
		u := upgradeOf(4, c.members, servers, c.without)
		if got := strings.Join(u.Against, "; "); got != c.want || u.Next != c.next || u.Protocol != 4 {
			t.Errorf("%s: %q of %d, want %q of %d", name, got, u.Next, c.want, c.next)
		}
		for i := 1; i < len(u.Programs); i++ {
			if u.Programs[i-1].Node >= u.Programs[i].Node {
				t.Errorf("%s: out of order: %+v", name, u.Programs)
			}
		}
	}
}
