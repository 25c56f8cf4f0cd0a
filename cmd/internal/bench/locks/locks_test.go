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

// BenchmarkLocks measures our own locks and fences.
func BenchmarkLocks(b *testing.B) { b.Run("fencepost", BenchFencepost) }
