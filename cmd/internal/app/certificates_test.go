package app

import (
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// TestNodesThatAreRefused: who is no member because of its certificate is listed with why; a member keeps its place.
func TestNodesThatAreRefused(t *testing.T) {
	members := []api.Member{{Node: "n1"}, {Node: "n2"}}
	got := refused(members, map[string]string{"n2": "expired", "n4": "expired on Monday", "n3": "of another authority"})
	if len(got) != 2 || got[0].Node != "n3" || got[1].Node != "n4" || got[1].State != api.MemberRefused || got[1].Problem != "expired on Monday" || got[1].Components == nil {
		t.Errorf("%+v", got)
	}
}
