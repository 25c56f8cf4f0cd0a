package configs

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func valid() Config {
	c := Default()
	c.Node = "n1"
	return c
}

func TestDefaultIsValid(t *testing.T) {
	c := valid()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
}

// TestBounds changes one thing and expects one problem that names its path; or none.
func TestBounds(t *testing.T) {
	local := func(name, path string) Storage { return Storage{Name: name, Kind: "local", Path: path} }
	db := func(name, dsn string) Database { return Database{Name: name, DSN: NewDSN(dsn)} }
	cases := []struct {
		name   string
		change func(*Config)
		want   string // beginning of the only problem; empty: valid
	}{
		{"node missing", func(c *Config) { c.Node = "" }, "node: is missing"},
		{"node in capitals", func(c *Config) { c.Node = "N1" }, `node: is "N1", want 1 to 63`},
		{"node with a dot", func(c *Config) { c.Node = "n.1" }, "node: is"},
		{"node ends in a dash", func(c *Config) { c.Node = "n-" }, "node: is"},
		{"node of 63", func(c *Config) { c.Node = strings.Repeat("a", 63) }, ""},
		{"node of 64", func(c *Config) { c.Node = strings.Repeat("a", 64) }, "node: is"},
		{"group", func(c *Config) { c.Group = "a b" }, "group: is"},
		{"home missing", func(c *Config) { c.Home = "" }, "home: is missing"},
		{"home relative", func(c *Config) { c.Home = "data" }, `home: is "data", want an absolute path`},
		{"profile", func(c *Config) { c.Profile = "fast" }, `profile: is "fast", want one of local, lan, wan, patient`},
		{"role", func(c *Config) { c.Role = "king" }, `role: is "king", want one of core, spectator, witness, watchdog`},
		{"a witness founds", func(c *Config) { c.Role = RoleWitness }, ""},
		{"a spectator founds alone", func(c *Config) { c.Role = RoleSpectator }, `role: is spectator, which cannot found`},
		{"a watchdog founds", func(c *Config) {
			c.Role, c.Bootstrap, c.Seeds = RoleWatchdog, []string{"n1", "n2"}, []string{"127.0.0.1:1"}
		}, `role: is watchdog, which cannot found`},
		{"a spectator joins", func(c *Config) { c.Role, c.Seeds = RoleSpectator, []string{"127.0.0.1:1"} }, ""},
		{"socket relative", func(c *Config) { c.Admin.Socket = "x.sock" }, "admin.socket: is"},
		{"socket of 103", func(c *Config) { c.Admin.Socket = "/" + strings.Repeat("a", 102) }, ""},
		{"socket of 104", func(c *Config) { c.Admin.Socket = "/" + strings.Repeat("a", 103) }, "admin.socket: is 104 bytes long"},

		{"bind beyond loopback", func(c *Config) { c.Gossip.Bind = "0.0.0.0:7946" }, `gossip.bind: is "0.0.0.0:7946", beyond loopback`},
		{"bind to an address", func(c *Config) { c.Cluster.Bind = "10.0.0.1:7947" }, `cluster.bind: is "10.0.0.1:7947", beyond loopback`},
		{"bind to a name", func(c *Config) { c.Cluster.Bind = "example.org:7947" }, "cluster.bind: is"},
		{"bind to localhost", func(c *Config) { c.Cluster.Bind = "localhost:7947" }, ""},
		{"bind to all", func(c *Config) { c.Gossip.Bind = ":7946" }, "gossip.bind: is"},
		{"bind without port", func(c *Config) { c.Gossip.Bind = "127.0.0.1" }, "gossip.bind: is"},
		{"bind to any port", func(c *Config) { c.Gossip.Bind = "127.0.0.2:0" }, ""},
		{"bind to port 65536", func(c *Config) { c.Gossip.Bind = "127.0.0.1:65536" }, "gossip.bind: is"},
		{"bind IPv6", func(c *Config) { c.Gossip.Bind = "[::1]:7946" }, ""},
		{"bind twice", func(c *Config) { c.Cluster.Bind = c.Gossip.Bind }, `cluster.bind: is "127.0.0.1:7946", as gossip.bind`},
		{"any port twice", func(c *Config) { c.Gossip.Bind, c.Cluster.Bind = "127.0.0.1:0", "127.0.0.1:0" }, ""},
		{"advertise port 0", func(c *Config) { c.Gossip.Advertise = "127.0.0.1:0" }, "gossip.advertise: is"},
		{"advertise beyond loopback", func(c *Config) { c.Cluster.Advertise = "192.0.2.1:7947" }, "cluster.advertise: is"},

		{"bootstrap alone", func(c *Config) { c.Bootstrap = []string{"n1"} }, ""},
		{"bootstrap without this", func(c *Config) { c.Bootstrap = []string{"n2"} }, `bootstrap: does not name this node "n1"`},
		{"bootstrap without this, seeds", func(c *Config) { c.Bootstrap, c.Seeds = []string{"n2"}, []string{"127.0.0.1:1"} }, ""},
		{"bootstrap twice", func(c *Config) { c.Bootstrap = []string{"n1", "n2", "n1"} }, `bootstrap[2]: is "n1", as bootstrap[0] is`},
		{"bootstrap name", func(c *Config) { c.Bootstrap = []string{"n1", "n 2"} }, "bootstrap[1]: is"},
		{"seed without port", func(c *Config) { c.Seeds = []string{"127.0.0.1"} }, "seeds[0]: is"},
		{"seed port 0", func(c *Config) { c.Seeds = []string{"127.0.0.1:0"} }, "seeds[0]: is"},
		{"seed twice", func(c *Config) { c.Seeds = []string{"127.0.0.1:1", "127.0.0.1:1"} }, "seeds[1]: is"},

		{"ledger in the group", func(c *Config) { c.Ledger.DSN = NewDSN("") }, ""},
		{"ledger by reference", func(c *Config) { c.Ledger.DSN = NewDSN("env:LEDGER") }, ""},
		{"ledger", func(c *Config) { c.Ledger.DSN = NewDSN("127.0.0.1") }, "ledger.dsn: is no connection string"},
		{"ledger refers to nothing", func(c *Config) { c.Ledger.DSN = NewDSN("env:") }, "ledger.dsn: refers to nothing"},

		{"no voters", func(c *Config) { c.Raft.Voters = 0 }, "raft.voters: is 0, want 1 to 7"},
		{"even voters", func(c *Config) { c.Raft.Voters = 2 }, "raft.voters: is 2, want an odd number"},
		{"seven voters", func(c *Config) { c.Raft.Voters = 7 }, ""},
		{"nine voters", func(c *Config) { c.Raft.Voters = 9 }, "raft.voters: is 9, want 1 to 7"},
		{"followers", func(c *Config) { c.Raft.Followers = -1 }, "raft.followers: is -1, want 1 to 256"},
		{"reap", func(c *Config) { c.Raft.ReapAfter = time.Second }, "raft.reap_after: is 1s, want 1m0s to"},
		{"snapshots", func(c *Config) { c.Raft.SnapshotThreshold = 1 }, "raft.snapshot_threshold: is 1"},
		{"selector", func(c *Config) { c.Recovery.Selector = "first" }, "recovery.selector: is"},
		{"fence", func(c *Config) { c.Recovery.FenceTTL = time.Millisecond }, "recovery.fence_ttl: is 1ms, want 1s to"},
		{"recovery attempts", func(c *Config) { c.Recovery.MaxAttempts = 0 }, "recovery.max_attempts: is 0"},
		{"concurrent", func(c *Config) { c.Backup.MaxConcurrent = 65 }, "backup.max_concurrent: is 65, want 1 to 64"},
		{"backup attempts", func(c *Config) { c.Backup.MaxAttempts = 101 }, "backup.max_attempts: is 101"},
		{"on failure", func(c *Config) { c.Backup.OnFailure = "panic" }, "backup.on_failure: is"},
		{"rate", func(c *Config) { c.Backup.RateLimit = -1 }, "backup.rate_limit: is -1"},
		{"keep", func(c *Config) { c.Restore.KeepOld = -1 }, "restore.keep_old: is -1ns"},
		{"start within", func(c *Config) { c.Restore.StartWithin = 0 }, "restore.start_within: is 0s"},
		{"globals", func(c *Config) {
			c.Databases = []Database{{Name: "a", DSN: NewDSN("postgres://h/d"), Globals: "all"}}
		}, `databases[0].globals: is "all", want one of , passwords, none`},
		{"jobs", func(c *Config) { c.Restore.Jobs = 33 }, "restore.jobs: is 33"},
		{"grace", func(c *Config) { c.Stop.Grace = 2 * time.Hour }, "stop.grace: is 2h0m0s"},
		{"log level", func(c *Config) { c.Log.Level = "loud" }, "log.level: is"},
		{"log format", func(c *Config) { c.Log.Format = "xml" }, "log.format: is"},

		{"schedule", recurring(func(s *Schedule, _ *Retention, _ *Component) {}), ""},
		{"schedule of nothing", recurring(func(s *Schedule, _ *Retention, _ *Component) { s.Database = "b" }), `schedules[0].database: is "b", which is none of databases`},
		{"schedule of a scratch server", recurring(func(s *Schedule, _ *Retention, _ *Component) { s.Database = "lab" }), "schedules[0].database: is"},
		{"schedule line", recurring(func(s *Schedule, _ *Retention, _ *Component) { s.Cron = "" }), "schedules[0].cron: is missing"},
		{"schedule zone", recurring(func(s *Schedule, _ *Retention, _ *Component) { s.Zone = "Berlin" }), "schedules[0].zone: is"},
		{"schedule local", recurring(func(s *Schedule, _ *Retention, _ *Component) { s.Zone = "Local" }), "schedules[0].zone: is"},
		{"schedule missed", recurring(func(s *Schedule, _ *Retention, _ *Component) { s.Missed = "twice" }), "schedules[0].missed: is"},
		{"schedule storage", recurring(func(s *Schedule, _ *Retention, _ *Component) { s.Storages = []string{"x"} }), "schedules[0].storages[0]: is"},
		{"schedule scratch", recurring(func(s *Schedule, _ *Retention, _ *Component) { s.Scratch = "lab" }), "schedules[0].scratch: does not belong"},
		{"schedule verify", recurring(func(s *Schedule, _ *Retention, _ *Component) { s.Kind, s.Scratch = "verify", "lab" }), ""},
		{"schedule into a source", recurring(func(s *Schedule, _ *Retention, _ *Component) { s.Kind, s.Scratch = "verify", "a" }), "schedules[0].scratch: is"},
		{"retention of nothing", recurring(func(_ *Schedule, r *Retention, _ *Component) { r.Database = "b" }), "retention[0].database: is"},
		{"retention share", recurring(func(_ *Schedule, r *Retention, _ *Component) { r.MaxPercent = 0 }), "retention[0].max_percent: is 0"},
		{"retention keeps none", recurring(func(_ *Schedule, r *Retention, _ *Component) { r.MinKeep = 0 }), "retention[0].min_keep: is 0"},
		{"component name", recurring(func(_ *Schedule, _ *Retention, c *Component) { c.Name = "backup" }), "components[0].name: is"},
		{"component program", recurring(func(_ *Schedule, _ *Retention, c *Component) { c.Exec = "x" }), "components[0].exec: is"},
		{"component trigger", recurring(func(_ *Schedule, _ *Retention, c *Component) { c.Past = nil }), "components[0]: has no trigger"},
		{"component procedure", recurring(func(_ *Schedule, _ *Retention, c *Component) { c.Procedure = 3 }), "components[0].procedure: is 3"},

		{"no processors", func(c *Config) { c.Processors = nil }, ""},
		{"processor kind", func(c *Config) { c.Processors[0].Kind = "rar" }, `processors[0].kind: is "rar", want one of zstd, gzip, age`},
		{"processor level", func(c *Config) { c.Processors[0].Level = 5 }, "processors[0].level: is 5, want 1 to 4"},
		{"processor level missing", func(c *Config) { c.Processors[0].Level = 0 }, "processors[0].level: is 0, want 1 to 4"},
		{"processor twice", func(c *Config) { c.Processors = append(c.Processors, c.Processors[0]) }, `processors[1].kind: is "zstd", as that of processors[0]`},
		{"precedence twice", processors(Processor{Kind: "zstd", Level: 1, Precedence: 9}, Processor{Kind: "gzip", Level: 1, Precedence: 9}), "processors[1].precedence: is 9, as that of processors[0]"},
		{"precedence of 1001", processors(Processor{Kind: "gzip", Level: 9, Precedence: 1001}), "processors[0].precedence: is 1001"},
		{"gzip", processors(Processor{Kind: "gzip", Level: 9}), ""},
		{"gzip level", processors(Processor{Kind: "gzip", Level: 10}), "processors[0].level: is 10, want 1 to 9"},
		{"zstd with a key", processors(Processor{Kind: "zstd", Level: 1, IdentityFile: "/k"}), "processors[0].identity_file: does not belong to kind zstd, which knows kind, precedence, restore_only, level"},
		{"gzip with recipients", processors(Processor{Kind: "gzip", Level: 1, Recipients: []string{"age1x"}}), "processors[0].recipients: does not belong to kind gzip"},
		{"age", processors(Processor{Kind: "age", Recipients: []string{"age1x", "ssh-rsa y"}}), ""},
		{"age with a level", processors(Processor{Kind: "age", Level: 1, RecipientsFile: "/r"}), "processors[0].level: does not belong to kind age"},
		{"age without keys", processors(Processor{Kind: "age"}), "processors[0]: has nothing to encrypt with"},
		{"age with an identity only", processors(Processor{Kind: "age", IdentityFile: "/i"}), "processors[0]: has nothing to encrypt with"},
		{"age for restores", processors(Processor{Kind: "age", IdentityFile: "/i", RestoreOnly: true}), ""},
		{"age for restores without keys", processors(Processor{Kind: "age", RecipientsFile: "/r", RestoreOnly: true}), "processors[0]: is for restores only"},
		{"age with a passphrase", processors(Processor{Kind: "age", PassphraseFile: "/p"}), ""},
		{"age with both", processors(Processor{Kind: "age", PassphraseFile: "/p", Recipients: []string{"age1x"}}), "processors[0].passphrase_file: is set beside recipients"},
		{"age secret as recipient", processors(Processor{Kind: "age", Recipients: []string{"AGE-SECRET-KEY-1hunter"}}), "processors[0].recipients[0]: is no public key"},
		{"age relative file", processors(Processor{Kind: "age", RecipientsFile: "r"}), `processors[0].recipients_file: is "r", want an absolute path`},

		{"database", func(c *Config) { c.Databases = []Database{db("shop.main-1_a", "postgres://h/d")} }, ""},
		{"database name empty", func(c *Config) { c.Databases = []Database{db("", "postgres://h/d")} }, "databases[0].name: is"},
		{"database name climbs", func(c *Config) { c.Databases = []Database{db("../x", "postgres://h/d")} }, "databases[0].name: is"},
		{"database name dots", func(c *Config) { c.Databases = []Database{db("..", "postgres://h/d")} }, "databases[0].name: is"},
		{"database twice", func(c *Config) { c.Databases = []Database{db("a", "postgres://h/d"), db("a", "env:X")} }, "databases[1].name: is"},
		{"yield", func(c *Config) {
			c.Databases = []Database{{Name: "a", DSN: NewDSN("postgres://h/d"), Yield: "cancel", Jobs: 32}}
		}, ""},
		{"labels", func(c *Config) {
			c.Labels = []string{"eu", "big"}
			c.Databases = []Database{{Name: "a", DSN: NewDSN("postgres://h/d"), Needs: []string{"eu"}}}
		}, ""},
		{"too many dumps", func(c *Config) {
			c.Databases = []Database{{Name: "a", DSN: NewDSN("postgres://h/d"), MaxDumps: -1}}
		}, `databases[0].max_dumps: is -1, want 0 to 1000`},
		{"a label with a space", func(c *Config) { c.Labels = []string{"eu", "e u"} }, `labels[1]: is "e u", want 1 to 63 of a-z`},
		{"a need twice", func(c *Config) {
			c.Databases = []Database{{Name: "a", DSN: NewDSN("postgres://h/d"), Needs: []string{"eu", "eu"}}}
		}, `databases[0].needs[1]: is "eu", as databases[0].needs[0] is`},
		{"yield to nobody", func(c *Config) {
			c.Databases = []Database{{Name: "a", DSN: NewDSN("postgres://h/d"), Yield: "perhaps"}}
		}, `databases[0].yield: is "perhaps", want one of , warn, cancel`},
		{"standby", func(c *Config) {
			c.Databases = []Database{{Name: "a", DSN: NewDSN("postgres://h,i/d"), Standby: "always"}}
		}, `databases[0].standby: is "always", want one of , prefer`},
		{"rpo", func(c *Config) {
			c.Databases = []Database{{Name: "a", DSN: NewDSN("postgres://h/d"), RPO: time.Second}}
		}, "databases[0].rpo: is 1s, want 1m0s to 8760h0m0s"},
		{"throw-away server", func(c *Config) { c.Databases = []Database{{Name: "a", Scratch: true, Dir: "/var/tmp"}} }, ""},
		{"throw-away server without a place", func(c *Config) { c.Databases = []Database{{Name: "a", Scratch: true}} }, ""},
		{"throw-away server in a relative place", func(c *Config) { c.Databases = []Database{{Name: "a", Scratch: true, Dir: "tmp"}} }, "databases[0].dir: is"},
		{"throw-away server that yields", func(c *Config) { c.Databases = []Database{{Name: "a", Scratch: true, Yield: "warn"}} }, "databases[0].yield: does not belong"},
		{"a place for a server that is there", func(c *Config) { c.Databases = []Database{{Name: "a", DSN: NewDSN("postgres://h/d"), Dir: "/tmp"}} }, "databases[0].dir: belongs to"},
		{"jobs", func(c *Config) { c.Databases = []Database{{Name: "a", DSN: NewDSN("postgres://h/d"), Jobs: 33}} }, "databases[0].jobs: is 33, want 0 to 32"},
		{"dsn missing", func(c *Config) { c.Databases = []Database{db("a", "")} }, "databases[0].dsn: is missing"},
		{"dsn is a word", func(c *Config) { c.Databases = []Database{db("a", "hunter2")} }, "databases[0].dsn: is no connection string"},
		{"dsn is no URL", func(c *Config) { c.Databases = []Database{db("a", "postgres://u:hunter%2@h/d")} }, "databases[0].dsn: is not a valid URL"},
		{"dsn refers to nothing", func(c *Config) { c.Databases = []Database{db("a", "env:")} }, "databases[0].dsn: refers to nothing"},
		{"dsn refers to a relative file", func(c *Config) { c.Databases = []Database{db("a", "file:x")} }, "databases[0].dsn: refers to a relative path"},

		{"storage kind", func(c *Config) { c.Storages = []Storage{{Name: "a", Kind: "tape"}} }, "storages[0].kind: is"},
		{"storage without path", func(c *Config) { c.Storages = []Storage{local("a", "")} }, "storages[0].path: is missing"},
		{"storage path relative", func(c *Config) { c.Storages = []Storage{local("a", "x")} }, "storages[0].path: is"},
		{"memory with a path", func(c *Config) { c.Storages = []Storage{{Name: "a", Kind: "mem", Path: "/x"}} }, "storages[0].path: does not belong to kind mem"},
		{"storage twice", func(c *Config) { c.Storages = []Storage{local("a", "/x"), local("a", "/y")} }, "storages[1].name: is"},
		{"storage path twice", func(c *Config) { c.Storages = []Storage{local("a", "/x"), local("b", "/x/")} }, "storages[1].path: is"},
		{"s3", storages(bucket(nil)), ""},
		{"s3 without endpoint", storages(bucket(func(s *Storage) { s.Endpoint = "" })), "storages[0].endpoint: is no URL"},
		{"s3 endpoint without //", storages(bucket(func(s *Storage) { s.Endpoint = "h:9000" })), "storages[0].endpoint: is no URL"},
		{"s3 endpoint with keys", storages(bucket(func(s *Storage) { s.Endpoint = "https://id:hunter2@h" })), "storages[0].endpoint: has more than"},
		{"s3 endpoint with a bucket", storages(bucket(func(s *Storage) { s.Endpoint = "https://h/bkt" })), "storages[0].endpoint: has more than"},
		{"s3 without region", storages(bucket(func(s *Storage) { s.Region = "" })), "storages[0].region: is missing"},
		{"s3 bucket", storages(bucket(func(s *Storage) { s.Bucket = "Bkt" })), `storages[0].bucket: is "Bkt"`},
		{"s3 prefix", storages(bucket(func(s *Storage) { s.Prefix = "a/" })), `storages[0].prefix: is "a/"`},
		{"s3 prefix climbs", storages(bucket(func(s *Storage) { s.Prefix = "a/../b" })), "storages[0].prefix: is"},
		{"s3 prefix reserved", storages(bucket(func(s *Storage) { s.Prefix = "_Fencepost/x" })), "storages[0].prefix: is"},
		{"s3 access key missing", storages(bucket(func(s *Storage) { s.AccessKey = Secret{} })), "storages[0].access_key: is missing"},
		{"s3 secret key missing", storages(bucket(func(s *Storage) { s.SecretKey = Secret{} })), "storages[0].secret_key: is missing"},
		{"s3 secret key itself", storages(bucket(func(s *Storage) { s.SecretKey = NewSecret("hunter2") })), "storages[0].secret_key: holds the secret itself"},
		{"s3 secret key of nothing", storages(bucket(func(s *Storage) { s.SecretKey = NewSecret("env:") })), "storages[0].secret_key: refers to nothing"},
		{"s3 secret key relative", storages(bucket(func(s *Storage) { s.SecretKey = NewSecret("file:k") })), "storages[0].secret_key: refers to a relative path"},
		{"s3 small parts", storages(bucket(func(s *Storage) { s.PartSize = 1 << 20 })), "storages[0].part_size: is 1MiB, want 5MiB to 512MiB"},
		{"s3 lock", storages(bucket(func(s *Storage) { s.Lock = Lock{"governance", 1} })), ""},
		{"s3 lock mode", storages(bucket(func(s *Storage) { s.Lock = Lock{"ever", 1} })), "storages[0].lock.mode: is"},
		{"s3 lock without mode", storages(bucket(func(s *Storage) { s.Lock.Days = 1 })), "storages[0].lock.mode: is missing"},
		{"s3 lock without days", storages(bucket(func(s *Storage) { s.Lock.Mode = "compliance" })), "storages[0].lock.days: is 0, want 1 to"},
		{"s3 with a path", storages(bucket(func(s *Storage) { s.Path = "/x" })), "storages[0].path: does not belong to kind s3"},
		{"local with a bucket", storages(Storage{Name: "a", Kind: "local", Path: "/x", Bucket: "bkt"}), "storages[0].bucket: does not belong to kind local"},
		{"s3 twice", storages(bucket(nil), bucket(func(s *Storage) { s.Name, s.Endpoint = "b", "https://h/" })), "storages[1].prefix: is"},
		{"s3 within another", storages(bucket(func(s *Storage) { s.Prefix = "a" }), bucket(func(s *Storage) { s.Name, s.Prefix = "b", "a/b" })), "storages[1].prefix: is"},
		{"s3 beside another", storages(bucket(func(s *Storage) { s.Prefix = "a" }), bucket(func(s *Storage) { s.Name, s.Prefix = "b", "ab" })), ""},
		{"s3 of another server", storages(bucket(nil), bucket(func(s *Storage) { s.Name, s.Endpoint = "b", "https://h2" })), ""},
		{"dropbox", storages(box(nil)), ""},
		{"dropbox without app key", storages(box(func(s *Storage) { s.AppKey = "" })), "storages[0].app_key: is missing"},
		{"dropbox without token", storages(box(func(s *Storage) { s.RefreshToken = Secret{} })), "storages[0].refresh_token: is missing"},
		{"dropbox token itself", storages(box(func(s *Storage) { s.RefreshToken = NewSecret("hunter2") })), "storages[0].refresh_token: holds the secret itself"},
		{"dropbox folder", storages(box(func(s *Storage) { s.Folder = "/a" })), `storages[0].folder: is "/a"`},
		{"dropbox folder climbs", storages(box(func(s *Storage) { s.Folder = "a/.." })), "storages[0].folder: is"},
		{"dropbox odd parts", storages(box(func(s *Storage) { s.PartSize = 6 << 20 })), "storages[0].part_size: is 6MiB, want a multiple of 4MiB"},
		{"dropbox endpoint", storages(box(func(s *Storage) { s.Endpoint = "h:1" })), "storages[0].endpoint: is no URL"},
		{"dropbox with a bucket", storages(box(func(s *Storage) { s.Bucket = "bkt" })), "storages[0].bucket: does not belong to kind dropbox"},
		{"dropbox twice", storages(box(nil), box(func(s *Storage) { s.Name, s.Folder = "b", "FENCE/x" })), "storages[1].folder: is"},
		{"dropbox beside another", storages(box(nil), box(func(s *Storage) { s.Name, s.Folder = "b", "fence2" })), ""},
		{"dropbox of another account", storages(box(nil), box(func(s *Storage) { s.Name, s.RefreshToken = "b", NewSecret("env:Y") })), ""},
		{"s3 with a folder", storages(bucket(func(s *Storage) { s.Folder = "x" })), "storages[0].folder: does not belong to kind s3"},
		{"local leaves room", storages(Storage{Name: "a", Kind: "local", Path: "/x", MinFree: 1 << 30}), ""},
		{"require too many", func(c *Config) { c.Storages, c.Backup.Require = []Storage{local("a", "/x")}, 2 }, "backup.require: is 2, but there are 1"},
		{"require any of one", func(c *Config) { c.Storages, c.Backup.Require = []Storage{local("a", "/x")}, RequireAny }, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			config := valid()
			c.change(&config)
			err := config.Validate()
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil {
				t.Fatal("no problem")
			}
			got := lines(t, err)
			if len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
				t.Fatalf("problems %q, want one that begins %q", got, c.want)
			}
			if strings.Contains(got[0], "hunter") {
				t.Fatalf("a secret in %q", got[0])
			}
		})
	}
}

func storages(ss ...Storage) func(*Config) {
	return func(c *Config) { c.Storages = ss }
}

func box(change func(*Storage)) Storage {
	s := Storage{Name: "a", Kind: "dropbox", AppKey: "k", RefreshToken: NewSecret("env:X"), Folder: "fence", PartSize: 8 << 20}
	if change != nil {
		change(&s)
	}
	return s
}

func bucket(change func(*Storage)) Storage {
	s := Storage{Name: "a", Kind: "s3", Endpoint: "https://h", Region: "r", Bucket: "bkt", PartSize: 8 << 20,
		AccessKey: NewSecret("id"), SecretKey: NewSecret("env:X")}
	if change != nil {
		change(&s)
	}
	return s
}

func processors(ps ...Processor) func(*Config) {
	return func(c *Config) { c.Processors = ps }
}

func TestAllProblemsAtOnce(t *testing.T) {
	c := valid()
	c.Node, c.Raft.Voters, c.Log.Level = "", 4, "loud"
	if got := lines(t, c.Validate()); len(got) != 3 {
		t.Fatalf("problems %q, want three", got)
	}
}

func TestBootstrapNodes(t *testing.T) {
	c := valid()
	if got := c.BootstrapNodes(); !slices.Equal(got, []string{"n1"}) {
		t.Errorf("alone: %v", got)
	}
	c.Seeds = []string{"127.0.0.1:1"}
	if got := c.BootstrapNodes(); len(got) != 0 {
		t.Errorf("with seeds only: %v, want none: the node joins", got)
	}
	c.Bootstrap = []string{"n1", "n2"}
	if got := c.BootstrapNodes(); !slices.Equal(got, c.Bootstrap) {
		t.Errorf("listed: %v", got)
	}
}

// recurring is a configuration with a schedule, a retention and a component, edited.
func recurring(edit func(*Schedule, *Retention, *Component)) func(*Config) {
	return func(c *Config) {
		c.Databases = []Database{{Name: "a", DSN: NewDSN("postgres://h/d")}, {Name: "lab", DSN: NewDSN("postgres://l/d"), Scratch: true}}
		var s Schedule
		var r Retention
		var h Component
		s.setDefaults("")
		r.setDefaults("")
		h.setDefaults("")
		s.Name, s.Database, s.Cron = "nightly", "a", "@daily"
		r.Database, r.Last = "a", 3
		h.Name, h.Exec, h.Past = "export", "/bin/x", []string{"received"}
		edit(&s, &r, &h)
		c.Schedules, c.Retention, c.Components = []Schedule{s}, []Retention{r}, []Component{h}
	}
}
