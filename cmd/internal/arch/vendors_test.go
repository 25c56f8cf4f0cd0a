package arch

// vendor is one library (an import path and all below it) and the packages of ours that
// may import it. An entry of by that ends in ".go" is a single file.
type vendor struct {
	path string
	by   []string
}

var vendors = []vendor{
	{"github.com/hashicorp/memberlist", []string{"gms/internal/gossip"}},
	{"github.com/hashicorp/raft", []string{"gms/internal/consensus"}},
	{"github.com/hashicorp/raft-wal", []string{"gms/internal/consensus"}},
	{"github.com/hashicorp/go-hclog", []string{"gms/internal/consensus"}},
	{"go.etcd.io/bbolt", []string{"gms/internal/consensus"}},
	{"github.com/hashicorp/go-metrics", []string{"gms/internal/consensus", "gms/internal/gossip"}},
	{"google.golang.org/grpc", []string{"gms/internal/rpc", "gms/internal/wire", "gms/fakes_test.go"}},
	{"google.golang.org/protobuf", []string{"gms", "gms/internal/*"}},

	{"github.com/jackc/pgx/v5", []string{"pipeline/source/postgres", "pipeline/ledger/postgres", "pipeline/pgtest"}},
	{"github.com/pressly/goose/v3", []string{"pipeline/ledger/postgres"}},
	{"github.com/klauspost/compress", []string{"pipeline/processor/zstd", "pipeline/processor/gzip"}},
	{"filippo.io/age", []string{"pipeline/processor/age"}},
	{"github.com/minio/minio-go/v7", []string{"pipeline/storage/s3"}},
	{"github.com/dropbox/dropbox-sdk-go-unofficial/v6", []string{"pipeline/storage/dropbox"}},
	{"github.com/robfig/cron/v3", []string{"pipeline/schedule"}},

	{"github.com/spf13/viper", []string{"configs/load.go"}},
	{"github.com/spf13/cobra", []string{"cmd/internal/cli"}},
	{"github.com/spf13/pflag", []string{"cmd/internal/cli"}},
	{"github.com/prometheus/client_golang", []string{"cmd/internal/app", "cmd/internal/metrics"}},

	{"golang.org/x/sync", []string{"..."}},
	{"golang.org/x/sys", []string{"..."}},
	{"golang.org/x/crypto", []string{"..."}},
	{"golang.org/x/term", []string{"..."}},
}

// testVendors are libraries for tests: seen by test files and by the testOnly packages.
var testVendors = []string{
	"github.com/google/go-cmp",
	"pgregory.net/rapid",
	"github.com/anishathalye/porcupine",
	"go.uber.org/goleak",
	"github.com/rogpeppe/go-internal",
	"github.com/chromedp/chromedp",
	"github.com/chromedp/cdproto",
}
