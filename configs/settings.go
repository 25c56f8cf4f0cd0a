package configs

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"time"
)

// Settings belong to the whole group: every node knows them, whoever made them. They are applied and exported as files
// (`fencepost apply -f DIR`), and name nothing of a node's own file. Secrets are references that each node follows for itself.
type Settings struct {
	// Servers own databases by pattern: each hour they are asked which there are. A new one is backed up by its server's
	// schedule from then on; one that is gone alarms, and its backups stay. For example
	//
	//	- name: pg1
	//	  dsn: file:/etc/fencepost/pg1.dsn
	//	  include: ["*"]
	//	  exclude: [postgres, "scratch_*"]
	//	  max_dumps: 2
	//	  rpo: 26h
	//	  schedule: {cron: "0 22 * * *", zone: Europe/Berlin, storages: [cloud], spread: 4h, windows: ["22:00-06:00"]}
	//	  retention: {last: 3, daily: 7, weekly: 4}
	Servers []Server `yaml:"servers"`
	// Databases are single ones, as in a node's file. One that is named as a server's would be (pg1.shop) is taken out of
	// the server's hands.
	Databases []Database `yaml:"databases"`
	// Storages are places to keep backups in, as in a node's file.
	Storages []Storage `yaml:"storages"`
	// Schedules are recurring work, as in a node's file.
	Schedules []Schedule `yaml:"schedules"`
	// Retention is what is kept of a database, as in a node's file.
	Retention []Retention `yaml:"retention"`
	// Bindings let users who are viewers be operators of some databases: a team's own. For example
	//
	//	- name: team-a
	//	  user: ann
	//	  labels: [team-a]
	//	  as: [source, target]
	Bindings []Binding `yaml:"bindings"`
	// Approvals are what nobody does alone: a request waits until a second person, who may do the same, has approved it, and
	// is then carried out as it was asked. Whatever is set here, to change it takes a second person, too: have two people
	// who are admins before. For example
	//
	//	- name: delete
	//	- name: restore
	//	  within: 2h
	//	- name: storage
	//	- name: ledger
	//	- name: node
	Approvals []Approval `yaml:"approvals"`
	// Hooks are web hooks of the whole group, as in the section notify of a node's file. Their urls are references, which each
	// node follows for itself.
	Hooks []Hook `yaml:"hooks"`
	// Mails are mail servers, and who gets mail, as in the section notify of a node's file.
	Mails []Mail `yaml:"mails"`
	// Rules say which events are told to whom, when, and what goes into one message. How many hours a database may be without
	// a good backup is its rpo. Without the rule default the section notify of the nodes' files counts. For example
	//
	//	- name: default
	//	  after: 2m
	//	- name: backup
	//	  after: 0s
	//	  repeat: 6h
	//	  to: [night]
	//	- name: member
	//	  severity: none
	Rules []Rule `yaml:"rules"`
	// Heartbeats are addresses of outside watchers, which are called while all is well: there is a quorum, the ledger answers and
	// every database has a good backup within its rpo. When a call stays away the watcher rings, also when every node is dead. For
	// example
	//
	//	- name: watchdog
	//	  url: file:/etc/fencepost/watchdog.url
	Heartbeats []Beat `yaml:"heartbeats"`
	// Users are who may log in. They are accounts, which are made and changed as fencepost user does; with --prune those that
	// the files do not name are removed when they name any. For example
	//
	//	- name: ann
	//	  role: operator
	//	  password: file:/root/ann.password
	Users []User `yaml:"users"`
}

// User is somebody who may log in.
type User struct {
	// Name is what they log in with: 1 to 63 of a-z, 0-9, "._-", beginning with a letter.
	Name string `yaml:"name"`
	// Role is viewer, operator or admin.
	Role string `yaml:"role"`
	// Disabled keeps them out. Default false.
	Disabled bool `yaml:"disabled"`
	// Password is a reference file:PATH, env:NAME or command:PROGRAM to the first one, which is followed where fencepost apply
	// runs, and only when the user is made: from then on it is theirs to change.
	Password Secret `yaml:"password"`
}

// Approval is an operation that takes a second person.
type Approval struct {
	// Name is the operation: delete (a backup; to let retention remove more at once than it may by itself; to change what
	// it keeps), restore (over something: in place, or where an existing database may be replaced; and to swap it back),
	// storage (to add, change or remove one of the settings; to remove what a check finds that nothing counts), ledger (to
	// reconcile, adopt, begin or move it, which the node does where it is approved) or node (to remove or forget one).
	Name string `yaml:"name"`
	// Within is how long a request waits for the second person, 1m to 720h; then it is worth nothing. Default 24h.
	Within time.Duration `yaml:"within"`
}

func (a *Approval) setDefaults(string) { *a = Approval{Within: 24 * time.Hour} }

// Binding is what a user may do with databases that carry a label, beside what their role lets them do with all.
type Binding struct {
	// Name is what people call it; same alphabet as a database's.
	Name string `yaml:"name"`
	// User is who: the name of an account, which has a role of its own, usually viewer.
	User string `yaml:"user"`
	// Role is what they are for these databases: operator, which is the default and the only one.
	Role string `yaml:"role"`
	// Labels are labels of databases; a database with one of them is meant.
	Labels []string `yaml:"labels"`
	// As is source (make backups of them, look after these, restore them elsewhere), target (restore into their servers),
	// or both. Who may only restore into a target makes new databases there, and replaces none but the one that was backed
	// up. Default both.
	As []string `yaml:"as"`
}

func (b *Binding) setDefaults(string) {
	*b = Binding{Role: "operator", As: []string{"source", "target"}}
}

// Server is a PostgreSQL server whose databases are found by asking it.
type Server struct {
	// Name begins the names of its databases: shop on pg1 is pg1.shop; same alphabet as a database's, at most 30 long.
	Name string `yaml:"name"`
	// DSN is a connection to any of its databases, without a password in it: a reference file:PATH, env:NAME or
	// command:PROGRAM, or a text whose password comes from a .pgpass file.
	DSN DSN `yaml:"dsn"`
	// Include are patterns of names of databases: * is any text, ? any letter. Default all.
	Include []string `yaml:"include"`
	// Exclude are patterns of those that are left out all the same. Default postgres. Templates, and what restores leave
	// beside a database (shop__fp_7, shop__was_7), are never backed up.
	Exclude []string `yaml:"exclude"`
	// MaxDumps is how many backups of its databases are made at the same time, by all nodes together. Default 0: any number.
	MaxDumps int `yaml:"max_dumps"`
	// RPO is as that of a database, for each. Default 26h.
	RPO time.Duration `yaml:"rpo"`
	// Needs are as those of a database; who asks the server which databases there are needs them too.
	Needs []string `yaml:"needs"`
	// Labels are as those of a database, for each.
	Labels []string `yaml:"labels"`
	// Yield, Standby, Jobs and Globals are as those of a database.
	Yield   string `yaml:"yield"`
	Standby string `yaml:"standby"`
	Jobs    int    `yaml:"jobs"`
	Globals string `yaml:"globals"`
	// Schedule is when its databases are backed up; name, kind, database and scratch are left out. With spread they do not
	// begin all at once. Without a cron line nothing is scheduled.
	Schedule Schedule `yaml:"schedule"`
	// Retention is what is kept of each; database is left out. Without a rule everything is.
	Retention Retention `yaml:"retention"`
}

func (s *Server) setDefaults(string) {
	*s = Server{Include: []string{"*"}, Exclude: []string{"postgres"}, RPO: defaultRPO, Retention: Retention{MinKeep: 1, MaxPercent: 25}}
}

// left are patterns of what restores make beside a database, for a while.
var left = []string{"*__fp_*", "*__was_*"}

// Wants tells whether a database of that name on the server is its to back up.
func (s Server) Wants(dbname string) bool {
	return matchAny(s.Include, dbname) && !matchAny(s.Exclude, dbname) && !matchAny(left, dbname)
}

func matchAny(patterns []string, name string) bool {
	for _, p := range patterns {
		text := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(p))
		if ok, err := regexp.MatchString("(?s)^"+text+"$", name); ok && err == nil {
			return true
		}
	}
	return false
}

// longestServer bounds the name of a server, so that there is room for those of its databases.
const longestServer = 30

// NameOn is the configured name of a database that was found on a server: no two databases have the same one. What does not
// fit the alphabet, or is too long, is replaced, and a part of its hash added.
func NameOn(server, dbname string) string {
	name := server + "." + dbname
	if itemName.MatchString(name) && !strings.Contains(dbname, "~") {
		return name
	}
	plain := regexp.MustCompile(`[^a-z0-9_.-]+`).ReplaceAllString(strings.ToLower(dbname), "_")
	sum := sha256.Sum256([]byte(dbname))
	const most, hashed = 63, 10
	room := most - len(server) - len("..") - hashed
	return server + "." + plain[:min(len(plain), room)] + "." + hex.EncodeToString(sum[:])[:hashed]
}

// Database is the configuration of a database that was found on the server.
func (s Server) Database(dbname string) Database {
	return Database{
		Name: NameOn(s.Name, dbname), DSN: s.DSN, DBName: dbname, RPO: s.RPO, MaxDumps: s.MaxDumps, Needs: s.Needs, Labels: s.Labels,
		Yield: s.Yield, Standby: s.Standby, Jobs: s.Jobs, Globals: s.Globals,
	}
}

// Scheduled is when a database of the server is backed up; false: nothing is scheduled.
func (s Server) Scheduled(dbname string) (Schedule, bool) {
	out := s.Schedule
	out.Kind = "backup"
	out.Name, out.Database = NameOn(s.Name, dbname), NameOn(s.Name, dbname)
	return out, s.Schedule.Cron != ""
}

// Kept is what is kept of a database of the server; false: everything.
func (s Server) Kept(dbname string) (Retention, bool) {
	out := s.Retention
	out.Database = NameOn(s.Name, dbname)
	return out, s.Retention.rules()
}

// rules tells whether anything is ever let go.
func (r Retention) rules() bool {
	return r.Last+r.Hourly+r.Daily+r.Weekly+r.Monthly+r.Yearly > 0 || r.MaxAge > 0
}
