package arch

// module is the prefix of all our import paths.
const module = "github.com/fencepost/fencepost"

// row is one package and what it may import of ours, in code that is not a test.
// A pattern is a package path relative to the module; "dir/..." means dir and all below,
// "dir/*" all below dir, "..." everything.
type row struct {
	pkg string
	may []string
	not []string // taken out of may again
}

var rows = []row{
	{pkg: "signals"},

	{pkg: "gms/internal/wire"},
	{pkg: "gms/internal/state", may: []string{"gms/internal/wire"}},
	{pkg: "gms/internal/detect", may: []string{"gms/internal/wire"}},
	{pkg: "gms/internal/sim", may: []string{"gms/internal/detect", "gms/internal/state", "gms/internal/wire"}},
	{pkg: "gms/internal/gossip", may: []string{"gms/internal/wire"}},
	{pkg: "gms/internal/consensus", may: []string{"gms/internal/state", "gms/internal/wire"}},
	{pkg: "gms/internal/rpc", may: []string{"gms/certs", "gms/internal/wire"}},
	{pkg: "gms/internal/seam", may: []string{"gms/internal/consensus", "gms/internal/state"}},
	// Certificates: what makes them, what a name in one looks like, and who believes them; imports nothing of ours.
	{pkg: "gms/certs"},
	{pkg: "gms/protocol"}, // what records of the state cache need, for whoever keeps some
	{pkg: "gms", may: []string{"signals", "gms/certs", "gms/internal/*"}},
	{pkg: "gms/gmstest", may: []string{"gms", "gms/certs", "gms/internal/*", "signals"}},

	{pkg: "recovery", may: []string{"signals", "gms"}},
	{pkg: "recovery/home"},
	{pkg: "recovery/warden", may: []string{"recovery/home"}},

	// How passwords and keys are carried; imports nothing, so that whoever has one may use it.
	{pkg: "pipeline/secret"},
	{pkg: "pipeline/source"},
	{pkg: "pipeline/processor"},
	{pkg: "pipeline/storage"},
	// One contract on another: a ledger's entry keeps what the source said of a dump.
	{pkg: "pipeline/ledger", may: []string{"pipeline/source"}},
	{pkg: "pipeline/source/postgres", may: []string{"pipeline/source", "pipeline/secret"}},
	{pkg: "pipeline/processor/zstd", may: []string{"pipeline/processor"}},
	{pkg: "pipeline/processor/gzip", may: []string{"pipeline/processor"}},
	{pkg: "pipeline/processor/age", may: []string{"pipeline/processor"}},
	{pkg: "pipeline/processor/processortest", may: []string{"pipeline/processor"}},
	{pkg: "pipeline/storage/local", may: []string{"pipeline/storage"}},
	{pkg: "pipeline/storage/mem", may: []string{"pipeline/storage"}},
	// How the two storages that are reached over a network give up connections that stall: one way, in one place.
	{pkg: "pipeline/storage/internal/stall"},
	{pkg: "pipeline/storage/s3", may: []string{"pipeline/storage", "pipeline/secret", "pipeline/storage/internal/stall"}},
	{pkg: "pipeline/storage/dropbox", may: []string{"pipeline/storage", "pipeline/secret", "pipeline/storage/internal/stall"}},
	// The emulator speaks the protocol from its documentation and knows nothing of the client, so that it checks it.
	{pkg: "pipeline/storage/dropbox/dropboxtest"},
	// A ledger keeps the items of components beside the tasks, and what triggers mean is component's to say.
	{pkg: "pipeline/ledger/embedded", may: []string{"pipeline/ledger", "pipeline/source", "pipeline/component"}},
	{pkg: "pipeline/ledger/postgres", may: []string{"pipeline/ledger", "pipeline/source", "pipeline/component"}},
	{pkg: "pipeline/storage/storagetest", may: []string{"pipeline/storage"}},
	{pkg: "pipeline/ledger/ledgertest", may: []string{"pipeline/ledger", "pipeline/source"}},
	{pkg: "pipeline/ledger/embedded/embeddedtest", may: []string{"pipeline/ledger", "pipeline/ledger/embedded", "pipeline/ledger/ledgertest"}},
	{pkg: "pipeline/pgtest"},
	{pkg: "pipeline/component", may: []string{"pipeline/ledger"}},
	{pkg: "pipeline/component/componenttest", may: []string{"pipeline/component", "pipeline/ledger", "pipeline/ledger/ledgertest"}},
	// The pure parts of pipeline, a package each.
	{pkg: "pipeline/schedule"},
	{pkg: "pipeline/retention"},
	{pkg: "pipeline", may: []string{
		"pipeline/source", "pipeline/processor", "pipeline/storage", "pipeline/ledger", "pipeline/component",
		"pipeline/schedule", "pipeline/retention",
	}},

	// The seam between the halves that host apps use too: what they import of cmd, and the only thing.
	{pkg: "cmd/components", may: []string{"signals", "gms", "recovery", "pipeline/component", "pipeline/ledger", "pipeline/ledger/embedded", "gms/protocol"}},

	{pkg: "configs"},

	{pkg: "cmd/internal/api"},
	// What a node knows, judged: pure, so that the page, the command, the probes and the notifications say the same.
	{pkg: "cmd/internal/overview", may: []string{"cmd/internal/api"}},
	{pkg: "cmd/internal/metrics", may: []string{"cmd/internal/api"}},
	{pkg: "cmd/internal/notify", may: []string{"cmd/internal/api"}},
	// What a group keeps of itself in its storages: how it is written, and what of it a new group takes.
	{pkg: "cmd/internal/groupstate", may: []string{"pipeline/processor", "pipeline/storage", "pipeline/ledger"}},
	{pkg: "cmd/internal/offline", may: []string{"cmd/internal/groupstate", "configs", "gms/certs", "recovery/home", "pipeline/..."}},
	// What the group keeps beside backups, and what is made of it: who may do what, and who did.
	{pkg: "cmd/internal/kept", may: []string{"gms/protocol"}},
	{pkg: "cmd/internal/accounts", may: []string{"cmd/internal/api", "cmd/internal/kept"}},
	{pkg: "cmd/internal/audit", may: []string{"cmd/internal/api", "cmd/internal/kept"}},
	// What the group keeps of how it works: which settings there are, and what was found by them.
	{pkg: "cmd/internal/settings", may: []string{"cmd/internal/api", "cmd/internal/kept", "configs"}},
	// Requests that need a second person, and who that may be.
	{pkg: "cmd/internal/approvals", may: []string{"cmd/internal/api", "cmd/internal/kept", "cmd/internal/accounts"}},
	{pkg: "cmd/internal/admin", may: []string{"cmd/internal/api", "cmd/internal/kept", "cmd/internal/accounts", "cmd/internal/audit", "cmd/internal/approvals"}},
	{pkg: "cmd/internal/web", may: []string{"cmd/internal/api", "cmd/internal/admin", "cmd/internal/accounts"}},
	{pkg: "cmd/internal/web/webtest"},
	// The pages for bad days, which the command prints.
	{pkg: "cmd/internal/runbook"},
	{pkg: "cmd/internal/cli", may: []string{"cmd/internal/api", "cmd/internal/audit", "configs", "cmd/internal/offline", "cmd/internal/runbook"}},
	{
		pkg: "cmd/internal/app",
		may: []string{
			"signals", "gms", "gms/certs", "gms/protocol", "recovery/...", "pipeline/...", "configs",
			"cmd/components", "cmd/internal/api", "cmd/internal/offline", "cmd/internal/admin", "cmd/internal/web", "cmd/internal/overview", "cmd/internal/metrics", "cmd/internal/notify",
			"cmd/internal/kept", "cmd/internal/accounts", "cmd/internal/audit", "cmd/internal/approvals", "cmd/internal/settings", "cmd/internal/groupstate",
		},
		not: []string{"pipeline/pgtest", "pipeline/storage/storagetest", "pipeline/storage/dropbox/dropboxtest", "pipeline/ledger/ledgertest", "pipeline/ledger/embedded/embeddedtest", "pipeline/component/componenttest"},
	},
	{pkg: "cmd/internal/arch"},
	{pkg: "cmd/internal/e2e", may: []string{"..."}},
	{pkg: "cmd/internal/chaos", may: []string{"..."}},
	// What is promised about speed, and what judges measurements by it; the peers are a module of their own below it.
	{pkg: "cmd/internal/bench"},
	{pkg: "cmd/internal/bench/locks", may: []string{"cmd/internal/bench", "gms", "signals"}},
	{pkg: "cmd/internal/bench/fencepost-bench", may: []string{"cmd/internal/bench"}},

	{pkg: "cmd/fencepostd", may: []string{"cmd/internal/app"}},
	{pkg: "cmd/fencepost", may: []string{"cmd/internal/cli"}},
	{pkg: "cmd/fencepost-demo", may: []string{"..."}},
	{pkg: "cmd/fencepost-example", may: []string{"..."}},
}

// testOnly are packages whose ordinary files serve tests; they may import test libraries.
var testOnly = []string{
	"gms/gmstest", "pipeline/pgtest", "pipeline/storage/storagetest", "pipeline/storage/dropbox/dropboxtest",
	"pipeline/ledger/ledgertest", "pipeline/ledger/embedded/embeddedtest", "pipeline/component/componenttest",
	"cmd/internal/web/webtest", "cmd/internal/arch", "cmd/internal/e2e", "cmd/internal/chaos",
}

// mains are one page long, and so is their doc.
var mains = []string{"cmd/fencepostd", "cmd/fencepost", "cmd/fencepost-demo", "cmd/fencepost-example", "cmd/internal/bench/fencepost-bench"}
