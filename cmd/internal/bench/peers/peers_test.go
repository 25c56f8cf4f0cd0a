package peers

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/bench/locks"
)

func TestMain(m *testing.M) {
	code, served := locks.Main(map[string]locks.Kind{
		locks.MemberKind: locks.Member, etcdKind: serveEtcd, zooKeeperKind: serveZooKeeper,
	})
	if served {
		os.Exit(code)
	}
	sayVersions()
	os.Exit(m.Run())
}

// sayVersions prints, as benchmarks print such things, of what the peers are.
func sayVersions() {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return
	}
	for _, m := range info.Deps {
		switch m.Path {
		case "go.etcd.io/etcd/server/v3":
			fmt.Printf("etcd: %s\n", m.Version)
		case "github.com/go-zookeeper/zk":
			fmt.Printf("go-zookeeper: %s\n", m.Version)
		}
	}
}

// BenchmarkLocks measures one service after the other; the servers of only one run at a time.
func BenchmarkLocks(b *testing.B) {
	b.Run("fencepost", locks.BenchFencepost)
	b.Run("etcd", func(b *testing.B) { benchPeer(b, startEtcd) })
	b.Run("zookeeper", func(b *testing.B) { benchPeer(b, startZooKeeper) })
}

// peer is a service that is started for the benchmark.
type peer interface {
	locks.Service
	stop() error
}

func benchPeer[P peer](b *testing.B, start func(ctx context.Context, dir string) (P, error)) {
	p, err := start(b.Context(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := p.stop(); err != nil {
			b.Error(err)
		}
	}()
	locks.Bench(b, p)
}
