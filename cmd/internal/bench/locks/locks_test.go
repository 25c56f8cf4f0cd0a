package locks

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if code, served := Main(map[string]Kind{MemberKind: Member}); served {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// BenchmarkLocks is ours alone; beside its peers it is in the module cmd/internal/bench/peers.
func BenchmarkLocks(b *testing.B) { b.Run("fencepost", BenchFencepost) }
