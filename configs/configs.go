package configs

import "time"

// Config is the whole file. The zero value is not usable: start from Default.
type Config struct {
	// Node is the stable name of this node, 1 to 63 of a-z, 0-9 and "-", which
	// is not at an end. Required.
	Node string `yaml:"node"`
	// Home is the node's own directory (an absolute path): its key, its part of the log.
	// Two nodes never share one. Default /var/lib/fencepost.
	Home string `yaml:"home"`
	// Group is the name of the group that the node forms or joins. Default fencepost.
	Group string `yaml:"group"`
	// Role is what the node takes part in: core (all), spectator (sees all and plans; makes, restores and recovers nothing),
	// witness (only votes, for two members that need a third vote) or watchdog (only reports deaths). Default core.
	Role Role `yaml:"role"`
	// Labels say what this node has that not every node has: work can ask for them. At most 16; same alphabet as a
	// database's name. Default none.
	Labels []string `yaml:"labels"`
	// Bootstrap are the names of the nodes that form a new group, the same list on all of
	// them. Default: this node alone when there are no seeds, nobody when there are: then it only joins.
	Bootstrap []string `yaml:"bootstrap"`
	// Seeds are gossip addresses (host:port) of members to join. Default none.
	Seeds []string `yaml:"seeds"`
	// Profile chooses all the time-outs together, by how long a silent node is waited for: local 1 s, lan 3 s, wan 15 s,
	// patient 60 s. A proven death is noticed at once in all of them. Default patient.
	Profile Profile `yaml:"profile"`

	// Gossip is who is here: UDP and TCP.
	Gossip Port `yaml:"gossip"`
	// Cluster is the replicated log and calls between nodes: TCP.
	Cluster  Port     `yaml:"cluster"`
	Security Security `yaml:"security"`
	Admin    Admin    `yaml:"admin"`
	Audit    Audit    `yaml:"audit"`
	Raft     Raft     `yaml:"raft"`
	Evidence Evidence `yaml:"evidence"`
	Recovery Recovery `yaml:"recovery"`
	Backup   Backup   `yaml:"backup"`
	Restore  Restore  `yaml:"restore"`
	Stop     Stop     `yaml:"stop"`
	Ledger   Ledger   `yaml:"ledger"`
	// Processors are byte filters between a database and its storages, highest precedence first. Encryption, for example:
	//
	//	- kind: age
	//	  recipients: ["age1..."]
	//	  identity_file: /etc/fencepost/restore.key
	Processors []Processor `yaml:"processors"`
	// Databases are what backups are made of. For example
	//
	//	- name: shop
	//	  dsn: postgres://backup@127.0.0.1:5432/shop
	//	  scratch: false
	//	  dir: /var/tmp
	//	  yield: warn
	//	  standby: prefer
	//	  jobs: 4
	//	  rpo: 26h
	//	  globals: passwords
	//	  needs: [eu]
	//	  labels: [team-a]
	Databases []Database `yaml:"databases"`
	// Storages are places to keep backups in; `fencepost storage test NAME --config FILE` tries one. A kind refuses the keys of the
	// others. For example
	//
	//	- name: disk
	//	  kind: local
	//	  path: /srv/backups
	//	  min_free: 2GiB
	//	- name: cloud
	//	  kind: s3
	//	  endpoint: https://s3.eu-central-1.amazonaws.com
	//	  region: eu-central-1
	//	  bucket: backups
	//	  prefix: shop
	//	  access_key: AKIA...
	//	  secret_key: file:/etc/fencepost/s3.secret
	//	  path_style: false
	//	  part_size: 8MiB
	//	  lock: {mode: governance, days: 30}
	//	  append_only: false
	//	- name: box
	//	  kind: dropbox
	//	  app_key: abc...
	//	  refresh_token: file:/etc/fencepost/box.token
	//	  folder: fencepost
	//	  part_size: 8MiB
	Storages []Storage `yaml:"storages"`
	// Schedules are recurring work: at each occurrence one task, whichever nodes are there. The same on all nodes. For example
	//
	//	- name: nightly
	//	  kind: backup
	//	  database: shop
	//	  storages: [disk]
	//	  scratch: lab
	//	  cron: "30 2 * * *"
	//	  zone: Europe/Berlin
	//	  missed: once
	//	  within: 24h
	//	  overlap: skip
	//	  max_queued: 1
	//	  spread: 20m
	//	  windows: ["22:00-06:00", "sat,sun 00:00-24:00"]
	//	  disabled: false
	Schedules []Schedule `yaml:"schedules"`
	// Retention is what is kept of a database; without an entry everything is. The same on all nodes. For example
	//
	//	- database: shop
	//	  last: 3
	//	  daily: 7
	//	  weekly: 4
	//	  monthly: 12
	//	  max_age: 0s
	//	  min_keep: 1
	//	  max_percent: 25
	//	  unverified: false
	//	  zone: Europe/Berlin
	Retention []Retention `yaml:"retention"`
	// Components are autonomous components of your own: a program that is run for each item that its trigger wants, by one node at a
	// time (`fencepost item`, `fencepost event`). The same on all nodes. For example
	//
	//	- name: export
	//	  exec: /usr/local/bin/export
	//	  args: []
	//	  past: [received]
	//	  future: [export]
	//	  types: [order]
	//	  procedure: 2
	//	  simultaneous: 4
	//	  every: 1m
	//	  limit: 1h
	//	  grace: 30s
	//	  back_off: 1m
	//	  quarantine_after: 5
	Components []Component `yaml:"components"`
	Notify     Notify      `yaml:"notify"`
	Log        Log         `yaml:"log"`
}

// Role is what a node takes part in.
type Role string

// Roles. Only core members and witnesses vote and may found a group.
const (
	RoleCore      Role = "core"      // all
	RoleSpectator Role = "spectator" // sees all and plans; makes, restores and recovers nothing
	RoleWitness   Role = "witness"   // only votes, for two members that need a third vote
	RoleWatchdog  Role = "watchdog"  // only reports deaths
)

// Profile is a named set of time-outs. The lease TTL is how long a silent run is waited
// for; a proven death is noticed at once in all of them.
type Profile string

// Profiles, with their lease TTL.
const (
	ProfileLocal   Profile = "local"   // 1 s: tests and demonstrations on one machine
	ProfileLAN     Profile = "lan"     // 3 s
	ProfileWAN     Profile = "wan"     // 15 s
	ProfilePatient Profile = "patient" // 60 s: a hiccup must not throw away a long dump
)

// Port is one of the node's network ports.
type Port struct {
	// Bind is the address (IP:port) to listen on; port 0 lets the system choose one. Beyond
	// loopback it needs the whole section security.
	Bind string `yaml:"bind"`
	// Advertise is the address (IP:port) that others are told. Empty: what was bound; with
	// 0.0.0.0 or [::] the machine's one address beside loopback and link-local ones, and
	// when it has several, one of them must be given.
	Advertise string `yaml:"advertise"`
}

// Raft bounds the replicated log.
type Raft struct {
	// Voters is the number of voting members that the leader keeps: odd, 1 to 7. Three
	// survive the loss of one, five the loss of two. Default 3.
	Voters int `yaml:"voters"`
	// Followers is how many more members keep a copy of the log without voting, 1 to 256;
	// the rest are fed by one of them, and see and do the same. Default 16.
	Followers int `yaml:"followers"`
	// ReapAfter is how long a non-voter may be gone before it is forgotten, at least 1m.
	// Voters are never forgotten by themselves. Default 72h.
	ReapAfter time.Duration `yaml:"reap_after"`
	// SnapshotThreshold is the number of log entries after which a snapshot is taken, 64
	// to 1048576. Larger: longer restarts; smaller: more writing. Default 8192.
	SnapshotThreshold int `yaml:"snapshot_threshold"`
}

// Evidence switches kinds of proof of death.
type Evidence struct {
	// Refused accepts "its host refuses all its ports" as proof. Switch it off where a
	// firewall answers for machines that are only unreachable. Default true.
	Refused bool `yaml:"refused"`
}

// Selector names the rule by which recoverers are chosen.
type Selector string

// Selectors.
const (
	SelectorRendezvous Selector = "rendezvous" // spreads a dead node's components
	SelectorSuccessor  Selector = "successor"  // the next in join order
)

// Recovery is how a dead member's work is taken over.
type Recovery struct {
	// Selector orders the candidates: rendezvous spreads a dead node's components, successor is the next in join order. What
	// the group was formed with counts. Default rendezvous.
	Selector Selector `yaml:"selector"`
	// FenceTTL is how long a recoverer may be silent before the next one is appointed, 1s
	// to 1h. Default 30s.
	FenceTTL time.Duration `yaml:"fence_ttl"`
	// MaxAttempts is how often one recoverer tries before the next one does, 1 to 100; at least one more than
	// backup.max_attempts counts. Like selector it is the group's, as it was formed with. Default 3.
	MaxAttempts int `yaml:"max_attempts"`
}

// OnFailure says what becomes of an attempt that failed or whose node died.
type OnFailure string

// What to do after a reverted attempt.
const (
	Rerun  OnFailure = "rerun"  // try again, up to MaxAttempts
	Revert OnFailure = "revert" // leave it reverted
)

// Backup bounds the making of backups.
type Backup struct {
	// Require says how many storages must hold the backup before it counts as completed:
	// all, any, or a number. Default all.
	Require Require `yaml:"require"`
	// MaxConcurrent is how many backups this node makes at once, 1 to 64. Default 2.
	MaxConcurrent int `yaml:"max_concurrent"`
	// RateLimit bounds the bytes per second read from one database; 0 is no limit.
	// Default 0.
	RateLimit ByteSize `yaml:"rate_limit"`
	// OnFailure is what follows a reverted attempt: rerun (up to MaxAttempts) or revert. Default rerun.
	OnFailure OnFailure `yaml:"on_failure"`
	// MaxAttempts bounds the attempts of one task, 1 to 100. Default 3.
	MaxAttempts int `yaml:"max_attempts"`
	// TimeLimit bounds one attempt of any task, 1m to 8760h; one past it is reverted and has failed. 0s (default): 24h, or
	// three times as long as the longest good one of that type and database when that is more.
	TimeLimit time.Duration `yaml:"time_limit"`
	// StallAfter is how long a storage may take nothing while others wait for it, 10s to 24h; then the backup goes on
	// without it, if Require allows. Default 2m.
	StallAfter time.Duration `yaml:"stall_after"`
	// DeleteDelay is how long a backup stays after its deletion was asked for, 0s to 8760h: until then it can be taken
	// back. Default 24h.
	DeleteDelay time.Duration `yaml:"delete_delay"`
}

// Restore bounds the restoring of backups.
type Restore struct {
	// KeepOld is how long the replaced database is kept as the undo; 0 drops it at once.
	// Default 24h.
	KeepOld time.Duration `yaml:"keep_old"`
	// StartWithin is how long after it was asked for a restore may still begin, at least
	// 1s; later it expires, since what was right then may be wrong now. Default 15m.
	StartWithin time.Duration `yaml:"start_within"`
	// Jobs is how many sessions restore at the same time, 0 to 32: streams of rows, then indexes and constraints. 0 (default):
	// as many as the backup has streams.
	Jobs int `yaml:"jobs"`
}

// Stop is how the daemon goes down.
type Stop struct {
	// Grace is how long running work may take to end by itself, 0s to 1h. Default 30s.
	Grace time.Duration `yaml:"grace"`
}

// Ledger is where tasks and backups are remembered.
type Ledger struct {
	// DSN is a PostgreSQL database (13 or later) for it, the same on all nodes and with the same user, who may make a schema
	// in it: the server itself, no connection pooler. Empty: the group keeps the ledger itself. What is in one is not in the
	// other; fencepost ledger move takes it there.
	DSN DSN `yaml:"dsn"`
}

// Processor is one byte filter between a database and its storages. What a kind has no use
// for must not be set.
type Processor struct {
	// Kind is zstd (default), gzip or age; each once.
	Kind string `yaml:"kind"`
	// Precedence orders the filters, 0 to 1000, no two alike: on the way into a storage
	// the highest comes first. Default 100 for zstd and gzip, 50 for age, so that what is
	// compressed is encrypted.
	Precedence int `yaml:"precedence"`
	// RestoreOnly keeps a filter for the backups that were made with it; new ones are made
	// without. Default false.
	RestoreOnly bool `yaml:"restore_only"`
	// Level is the compression level. zstd: 1 fastest, 2 (default), 3 better, 4 smallest and
	// some ten times slower than 2. gzip: 1 fastest to 9 smallest, default 6.
	Level int `yaml:"level"`
	// Recipients are the public keys that age encrypts to: age1..., or ssh-ed25519 and
	// ssh-rsa lines. Default none.
	Recipients []string `yaml:"recipients"`
	// RecipientsFile is a file (an absolute path) with one such key a line. Default none.
	RecipientsFile string `yaml:"recipients_file"`
	// IdentityFile is a file (an absolute path) with the secret keys that age decrypts with,
	// or an ssh private key. A node without one makes backups and cannot restore them.
	IdentityFile string `yaml:"identity_file"`
	// PassphraseFile is a file (an absolute path) whose first line is a passphrase of at
	// least 12 bytes, which age encrypts and decrypts with instead of keys. Default none.
	PassphraseFile string `yaml:"passphrase_file"`
}

// Database is a source of backups.
type Database struct {
	// Name is what commands, tasks and object paths call it: 1 to 63 of a-z, 0-9 and
	// "_.-", beginning with a letter or digit.
	Name string `yaml:"name"`
	// DSN is the connection: postgres://user:password@host:port/database, or
	// host=... dbname=..., or a reference env:NAME or file:PATH. A scratch server without one
	// is a throw-away server: the node makes it for each verification, and removes it after.
	DSN DSN `yaml:"dsn"`
	// DBName is the database on the server, when it is not the one that the DSN names. Default that of the DSN.
	DBName string `yaml:"dbname"`
	// Scratch makes it a server that backups are restored into for a while, to verify them, and nothing else: no backup
	// is made of it, and none restored for good. Default false.
	Scratch bool `yaml:"scratch"`
	// Dir is an absolute folder for throw-away servers; it needs room for a whole database. Default: the system's
	// folder for temporary files.
	Dir string `yaml:"dir"`
	// Yield is what a backup does when somebody waits for half a minute for a table that it
	// reads (to alter or truncate it): "" nothing, warn (in the log), or cancel the backup.
	Yield string `yaml:"yield"`
	// Standby is prefer to dump a standby when the DSN names several servers and one of them is a standby that keeps up
	// (at most five minutes behind); else, and by default, the first server that answers is dumped.
	Standby string `yaml:"standby"`
	// Jobs is how many streams the rows of a backup are divided among, 0 to 32: that many sessions read, and restore, at
	// the same time. 0 and 1 make one archive.
	Jobs int `yaml:"jobs"`
	// RPO is how old the newest good backup may be, by the time of its snapshot, 1m to 8760h; from then on the status, the
	// metrics and the notifications alarm, whether or not anything is scheduled. 0s: none is expected. Default 26h.
	RPO time.Duration `yaml:"rpo"`
	// Globals is what of the server (roles, tablespaces) goes with a backup: by default all but the hashes of passwords;
	// passwords: these too, which takes a superuser, so encrypt such backups; none: nothing.
	Globals string `yaml:"globals"`
	// MaxDumps is how many backups of databases on the same server (host and port of the DSN) are made at the same time, by
	// all nodes together, 0 to 1000; the same on all nodes. 0 (default): any number.
	MaxDumps int `yaml:"max_dumps"`
	// Needs are the labels that a node must carry to dump or restore it; the same on all nodes. Default none: any node does
	// that names it here.
	Needs []string `yaml:"needs"`
	// Labels are what roles of users can be bound to: a team's databases, for example. At most 16. Default none.
	Labels []string `yaml:"labels"`
}

// Throwaway tells whether it is a scratch server that the node makes for each verification.
func (d Database) Throwaway() bool { return d.Scratch && !d.DSN.Given() }

// Storage is a place where backups are kept. What a kind has no use for must not be set.
type Storage struct {
	// Name is what commands and manifests call it; same alphabet as a database's.
	Name string `yaml:"name"`
	// Kind is local (a directory), s3 (a bucket of Amazon S3 or of what speaks its protocol),
	// dropbox (a folder of an account) or mem (this process's memory, for trying out).
	Kind string `yaml:"kind"`
	// Path is the directory of a local storage, absolute.
	Path string `yaml:"path"`
	// MinFree is how many bytes of a local storage's file system backups leave free for others;
	// one that would go below fails. Default 0: only a full disk stops it.
	MinFree ByteSize `yaml:"min_free"`
	// Endpoint is the URL of an s3 server: https://host or http://host:port, without a path. Of
	// kind dropbox: another server of the same protocol; default none, which is Dropbox.
	Endpoint string `yaml:"endpoint"`
	// Region is the bucket's. Default us-east-1, which most servers but Amazon's accept.
	Region string `yaml:"region"`
	// Bucket must exist.
	Bucket string `yaml:"bucket"`
	// Prefix begins all keys, at most 100 bytes, without a slash at an end. Default none: the
	// bucket is all ours.
	Prefix string `yaml:"prefix"`
	// AccessKey is the id of the credentials, or a reference env:NAME or file:PATH to it.
	AccessKey Secret `yaml:"access_key"`
	// SecretKey is a reference env:NAME or file:PATH to the secret of the credentials, which
	// itself is not written here.
	SecretKey Secret `yaml:"secret_key"`
	// PathStyle puts the bucket into the path instead of the host's name; most servers but
	// Amazon's need it. Default false.
	PathStyle bool `yaml:"path_style"`
	// PartSize is how much is sent at once; a backup takes twice that of memory. s3: 5MiB to
	// 512MiB, and larger where the object needs it. dropbox: a multiple of 4MiB up to 148MiB.
	// Default 8MiB.
	PartSize ByteSize `yaml:"part_size"`
	// Lock keeps objects from being deleted; the bucket must have been made for it.
	Lock Lock `yaml:"lock"`
	// AppendOnly says that the credentials of an s3 storage may not delete: nothing is tried to be
	// removed there. A backup that is deleted becomes void, and its data stays until a rule of the
	// bucket removes it. Default false.
	AppendOnly bool `yaml:"append_only"`
	// AppKey is the key of the dropbox app that the account has authorized.
	AppKey string `yaml:"app_key"`
	// RefreshToken is a reference env:NAME or file:PATH to what authorizing the app has given
	// (fencepost storage auth); the token itself is not written here.
	RefreshToken Secret `yaml:"refresh_token"`
	// Folder is where a dropbox storage is, below what the app may see: at most 100 of a-z, A-Z,
	// 0-9, "_", "-" and spaces, with slashes between names. Case does not count. Default none:
	// all that the app may see is ours.
	Folder string `yaml:"folder"`
}

// Lock is the protection of objects in an s3 bucket.
type Lock struct {
	// Mode is governance (some credentials may lift it) or compliance (nobody may). Default
	// none.
	Mode string `yaml:"mode"`
	// Days is how long an object is protected, from 1 to 36500.
	Days int `yaml:"days"`
}

// Log is what the daemon writes to its standard error.
type Log struct {
	// Level is debug, info, warn or error. Default info.
	Level string `yaml:"level"`
	// Format is text or json. Default text.
	Format string `yaml:"format"`
}

// BootstrapNodes are the nodes that form a new group when this node finds none: the
// configured list; without one the node alone when there are no seeds; and nobody when
// there are: then the node only joins.
func (c *Config) BootstrapNodes() []string {
	switch {
	case len(c.Bootstrap) > 0:
		return c.Bootstrap
	case len(c.Seeds) == 0:
		return []string{c.Node}
	default:
		return nil
	}
}
