package configs

import "time"

// Default is the configuration of a node of which nothing was said but its name (which
// has no default: Node is empty).
func Default() Config {
	return Config{
		Home:      "/var/lib/fencepost",
		Group:     "fencepost",
		Role:      RoleCore,
		Bootstrap: []string{},
		Seeds:     []string{},
		Labels:    []string{},
		Profile:   ProfilePatient,
		Gossip:    Port{Bind: "127.0.0.1:7946"},
		Cluster:   Port{Bind: "127.0.0.1:7947"},
		Admin:     Admin{Socket: "/run/fencepost/fencepost.sock", Hosts: []string{}, SessionIdle: 30 * time.Minute, SessionMax: 12 * time.Hour},
		Raft: Raft{
			Voters:            3,
			Followers:         16,
			ReapAfter:         72 * time.Hour,
			SnapshotThreshold: 8192,
		},
		Evidence: Evidence{Refused: true},
		Recovery: Recovery{
			Selector:    SelectorRendezvous,
			FenceTTL:    30 * time.Second,
			MaxAttempts: 3,
		},
		Backup: Backup{
			Require:       RequireAll,
			MaxConcurrent: 2,
			OnFailure:     Rerun,
			MaxAttempts:   3,
			StallAfter:    2 * time.Minute,
			DeleteDelay:   24 * time.Hour,
		},
		Restore: Restore{
			KeepOld:     24 * time.Hour,
			StartWithin: 15 * time.Minute,
		},
		Stop:       Stop{Grace: 30 * time.Second},
		Processors: []Processor{{Kind: "zstd", Level: 2, Precedence: 100}},
		Databases:  []Database{},
		Storages:   []Storage{},
		Schedules:  []Schedule{},
		Retention:  []Retention{},
		Components: []Component{},
		Notify: Notify{
			Severity: "warning", After: time.Minute, Repeat: 24 * time.Hour, Heartbeat: Heartbeat{Every: time.Minute}, Hooks: []Hook{}, Mails: []Mail{},
		},
		Log: Log{Level: "info", Format: "text"},
	}
}

// setDefaults fills an entry of the list databases before the file's words are read.
func (d *Database) setDefaults(string) { *d = Database{RPO: defaultRPO} }

// defaultRPO is a day, and time for the backup of the next.
const defaultRPO = 26 * time.Hour

// setDefaults fills an entry of the list storages before the file's words are read.
func (s *Storage) setDefaults(kind string) {
	switch kind {
	case "s3":
		*s = Storage{Region: "us-east-1", PartSize: 8 << 20}
	case "dropbox":
		*s = Storage{PartSize: 8 << 20}
	}
}

// setDefaults fills an entry of the list processors before the file's words are read.
func (p *Processor) setDefaults(kind string) {
	switch kind {
	case "", "zstd":
		*p = Processor{Kind: "zstd", Level: 2, Precedence: 100}
	case "gzip":
		*p = Processor{Kind: "gzip", Level: 6, Precedence: 100}
	case "age":
		*p = Processor{Kind: "age", Precedence: 50}
	}
}
