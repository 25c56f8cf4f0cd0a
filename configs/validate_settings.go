package configs

import (
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// lists are what a node's file and the settings of the group have in common, and the rules among them.
type lists struct {
	Databases []Database
	Storages  []Storage
	Schedules []Schedule
	Retention []Retention
	servers   []Server // of settings only
}

func (c *Config) lists() lists {
	return lists{Databases: c.Databases, Storages: c.Storages, Schedules: c.Schedules, Retention: c.Retention}
}

func (c lists) check(ps *problems) {
	c.checkDatabases(ps)
	c.checkStorages(ps)
	c.checkSchedules(ps)
	c.checkRetention(ps)
}

// onServer tells whether a name is one that a server would give to a database of its own.
func (c lists) onServer(name string) bool {
	return slices.ContainsFunc(c.servers, func(s Server) bool { return strings.HasPrefix(name, s.Name+".") })
}

// Validate checks everything that can be known without touching a machine: what it names must be in it, and no secret may
// be. The error is an *Error with all problems.
func (s *Settings) Validate() error {
	var ps problems
	all := lists{s.Databases, s.Storages, s.Schedules, s.Retention, s.Servers}
	seen := map[string]int{}
	for i := range s.Servers {
		at := fmt.Sprintf("servers[%d]", i)
		checkItemName(&ps, at, s.Servers[i].Name, "servers", seen, i)
		s.Servers[i].check(&ps, at, all)
	}
	all.check(&ps)
	s.checkBindings(&ps)
	s.checkApprovals(&ps)
	s.checkUsers(&ps)
	checkReceivers(&ps, "", s.Hooks, s.Mails, false)
	s.checkRules(&ps)
	s.checkBeats(&ps)
	for i, d := range s.Databases {
		if d.DSN.holdsPassword() {
			ps.add(fmt.Sprintf("databases[%d].dsn", i), "holds a password, which every member would keep: write file:PATH, env:NAME or command:PROGRAM")
		}
	}
	return ps.err("")
}

func (s *Settings) checkBindings(ps *problems) {
	seen := map[string]int{}
	for i, b := range s.Bindings {
		at := fmt.Sprintf("bindings[%d]", i)
		checkItemName(ps, at, b.Name, "bindings", seen, i)
		if b.User == "" {
			ps.add(at+".user", "is missing: name an account")
		}
		checkOneOf(ps, at+".role", b.Role, "operator")
		if len(b.Labels) == 0 {
			ps.add(at+".labels", "is empty, so that no database is meant: name labels of databases")
		}
		checkLabels(ps, at+".labels", b.Labels)
		if len(b.As) == 0 {
			ps.add(at+".as", "is empty: want source, target or both")
		}
		for j, as := range b.As {
			checkOneOf(ps, fmt.Sprintf("%s.as[%d]", at, j), as, "source", "target")
		}
	}
}

func (s *Settings) checkApprovals(ps *problems) {
	for i, a := range s.Approvals {
		at := fmt.Sprintf("approvals[%d]", i)
		checkOneOf(ps, at+".name", a.Name, append([]string{"delete", "restore", "storage", "ledger", "node"}, laterApprovals()...)...)
		if j := slices.IndexFunc(s.Approvals, func(other Approval) bool { return other.Name == a.Name }); j < i {
			ps.add(at+".name", "is %q, as approvals[%d] is: name each operation once", a.Name, j)
		}
		checkDuration(ps, at+".within", a.Within, time.Minute, 30*24*time.Hour)
	}
}

var userName = regexp.MustCompile(`^[a-z][a-z0-9._-]{0,62}$`)

func (s *Settings) checkUsers(ps *problems) {
	for i, u := range s.Users {
		at := fmt.Sprintf("users[%d]", i)
		if !userName.MatchString(u.Name) {
			ps.add(at+".name", "is %q, want 1 to 63 of a-z, 0-9, \"._-\", beginning with a letter", u.Name)
		}
		if j := slices.IndexFunc(s.Users, func(other User) bool { return other.Name == u.Name }); j < i {
			ps.add(at+".name", "is %q, as users[%d] is", u.Name, j)
		}
		checkOneOf(ps, at+".role", u.Role, "viewer", "operator", "admin")
		if problem := u.Password.problem(false); u.Password.Given() && problem != "" {
			ps.add(at+".password", "%s", problem)
		}
	}
}

func (s *Server) check(ps *problems, at string, all lists) {
	if len(s.Name) > longestServer {
		ps.add(at+".name", "has %d letters, want at most %d: the names of its databases begin with it", len(s.Name), longestServer)
	}
	if problem := s.DSN.problem(); problem != "" {
		ps.add(at+".dsn", "%s", problem)
	}
	if s.DSN.holdsPassword() {
		ps.add(at+".dsn", "holds a password, which every member would keep: write file:PATH, env:NAME or command:PROGRAM")
	}
	for _, list := range []struct {
		key      string
		patterns []string
	}{{"include", s.Include}, {"exclude", s.Exclude}} {
		for i, p := range list.patterns {
			if p == "" || len(p) > 63 {
				ps.add(fmt.Sprintf("%s.%s[%d]", at, list.key, i), "is %q, want 1 to 63 letters, with * for any text", p)
			}
		}
	}
	if len(s.Include) == 0 {
		ps.add(at+".include", "is empty, so that no database is backed up: want patterns, such as [\"*\"]")
	}
	sample := s.Database("x")
	sample.checkDumping(ps, at)
	s.checkPolicy(ps, at, all)
}

// checkPolicy looks at when the databases of a server are backed up, and what is kept of them.
func (s *Server) checkPolicy(ps *problems, at string, all lists) {
	plan := s.Schedule
	checkBelonging(ps, at+".schedule", "the schedule of a server", reflect.ValueOf(plan), []string{"name", "kind", "database", "scratch"})
	checkBelonging(ps, at+".retention", "the retention of a server", reflect.ValueOf(s.Retention), []string{"database"})
	if plan.Cron == "" && !reflect.ValueOf(plan).IsZero() {
		ps.add(at+".schedule.cron", "is missing: want five fields, such as 30 2 * * *, or @daily")
	}
	for i, name := range plan.Storages {
		if !slices.ContainsFunc(all.Storages, func(st Storage) bool { return st.Name == name }) {
			ps.add(fmt.Sprintf("%s.schedule.storages[%d]", at, i), "is %q, which is none of storages: name one of them", name)
		}
	}
	plan.checkTimes(ps, at+".schedule")
	s.Retention.checkRules(ps, at+".retention")
}

// checkBelonging reports keys that are set and that something does not know.
func checkBelonging(ps *problems, at, what string, v reflect.Value, foreign []string) {
	for f, value := range v.Fields() {
		if slices.Contains(foreign, key(f)) && !value.IsZero() {
			ps.add(at+"."+key(f), "does not belong to %s: remove it", what)
		}
	}
}

// holdsPassword tells whether the text itself has a password in it; a reference has none.
func (d DSN) holdsPassword() bool {
	if kind, _ := d.reference(); kind != "" {
		return false
	}
	if !isURL(d.raw) {
		return passwordWord.MatchString(d.raw)
	}
	u, err := url.Parse(d.raw)
	if err != nil {
		return true // it may
	}
	_, has := u.User.Password()
	return has || u.Query().Has("password") || u.Query().Has("sslpassword")
}

var passwordWord = regexp.MustCompile(`(?i)(^|\s)(ssl)?password\s*=`)

// With is the node's own configuration with the settings of the group in it, and what of them does not count on this node,
// because the file has something of that name, or in that place: the file wins, since it is nearer. Neither is changed.
func (c *Config) With(s Settings) (*Config, []Problem) {
	var ps problems
	out := *c
	out.Databases, out.Storages = slices.Clone(c.Databases), slices.Clone(c.Storages)
	out.Schedules, out.Retention = slices.Clone(c.Schedules), slices.Clone(c.Retention)
	const advice = "is in this node's file and in the group's settings, and here the file counts: remove one of them"
	for _, d := range s.Databases {
		if slices.ContainsFunc(c.Databases, func(own Database) bool { return own.Name == d.Name }) {
			ps.add("database "+d.Name, advice)
			continue
		}
		out.Databases = append(out.Databases, d)
	}
	for _, st := range s.Storages {
		switch i := slices.IndexFunc(c.Storages, func(own Storage) bool { _, value := st.overlaps(own); return own.Name == st.Name || value != "" }); {
		case i < 0:
			out.Storages = append(out.Storages, st)
		case c.Storages[i].Name == st.Name:
			ps.add("storage "+st.Name, advice)
		default:
			ps.add("storage "+st.Name, "is in the place of storage %s of this node's file: two copies in one place are one copy: remove one of them", c.Storages[i].Name)
		}
	}
	for _, sc := range s.Schedules {
		if slices.ContainsFunc(c.Schedules, func(own Schedule) bool { return own.Name == sc.Name }) {
			ps.add("schedule "+sc.Name, advice)
			continue
		}
		out.Schedules = append(out.Schedules, sc)
	}
	for _, r := range s.Retention {
		if slices.ContainsFunc(c.Retention, func(own Retention) bool { return own.Database == r.Database }) {
			ps.add("retention "+r.Database, advice)
			continue
		}
		out.Retention = append(out.Retention, r)
	}
	out.Notify.Hooks, out.Notify.Mails = slices.Clone(c.Notify.Hooks), slices.Clone(c.Notify.Mails)
	taken := func(name string) bool {
		return slices.ContainsFunc(c.Notify.Hooks, func(own Hook) bool { return own.Name == name }) || slices.ContainsFunc(c.Notify.Mails, func(own Mail) bool { return own.Name == name })
	}
	for _, h := range s.Hooks {
		if taken(h.Name) {
			ps.add("hook "+h.Name, advice)
			continue
		}
		out.Notify.Hooks = append(out.Notify.Hooks, h)
	}
	for _, m := range s.Mails {
		if taken(m.Name) {
			ps.add("mail "+m.Name, advice)
			continue
		}
		out.Notify.Mails = append(out.Notify.Mails, m)
	}
	if c.Notify.OwnRule() && slices.ContainsFunc(s.Rules, func(r Rule) bool { return r.Name == DefaultRule }) {
		ps.add("rule "+DefaultRule, advice)
	}
	if c.Notify.Heartbeat.URL.Given() && slices.ContainsFunc(s.Heartbeats, func(b Beat) bool { return b.Name == FileBeat }) {
		ps.add("heartbeat "+FileBeat, advice)
	}
	return &out, ps
}

// Rule is how an event of a kind is told: by its own rule, or that of the node's file when it says anything, or the settings'
// rule default.
func (s *Settings) Rule(file Notify, event string) Rule {
	for _, r := range s.Rules {
		if r.Name == event {
			return r
		}
	}
	for _, r := range s.Rules {
		if r.Name == DefaultRule && !file.OwnRule() {
			return r
		}
	}
	return Rule{Name: DefaultRule, Severity: file.Severity, After: file.After, Repeat: file.Repeat}
}

// Beats are the heartbeats of the settings and that of the node's file.
func (s *Settings) Beats(file Notify) (list []Beat) {
	own := file.Heartbeat.URL.Given()
	for _, b := range s.Heartbeats {
		if !own || b.Name != FileBeat {
			list = append(list, b)
		}
	}
	if own {
		list = append(list, Beat{Name: FileBeat, URL: file.Heartbeat.URL, Every: file.Heartbeat.Every})
	}
	return list
}

// Found is a database that was seen on a server of the settings.
type Found struct {
	Server string    `json:"server"`
	DBName string    `json:"dbname"`
	Since  time.Time `json:"since"`         // it is backed up
	Gone   time.Time `json:"gone,omitzero"` // since when it is not there any more; zero: it is
}

// Name is what commands, tasks and object paths call it.
func (f Found) Name() string { return NameOn(f.Server, f.DBName) }

// Expand is s with the databases that were found on its servers among the others. One that is gone can still be restored
// to its server, but nothing is scheduled for it, and nothing of it is let go. What s says of a name itself wins.
func (s Settings) Expand(all []Found) Settings {
	out := s
	out.Databases, out.Schedules, out.Retention = slices.Clone(s.Databases), slices.Clone(s.Schedules), slices.Clone(s.Retention)
	for _, f := range all {
		i := slices.IndexFunc(s.Servers, func(sv Server) bool { return sv.Name == f.Server })
		if i < 0 || slices.ContainsFunc(s.Databases, func(d Database) bool { return d.Name == f.Name() }) {
			continue
		}
		server := s.Servers[i]
		d := server.Database(f.DBName)
		if !f.Gone.IsZero() {
			d.RPO = 0 // none is expected any more
		}
		out.Databases = append(out.Databases, d)
		if !f.Gone.IsZero() || !server.Wants(f.DBName) {
			continue
		}
		plan, scheduled := server.Scheduled(f.DBName)
		if scheduled && !slices.ContainsFunc(s.Schedules, func(x Schedule) bool { return x.Name == plan.Name || x.Database == plan.Database && x.Kind == "backup" }) {
			out.Schedules = append(out.Schedules, plan)
		}
		rules, keeps := server.Kept(f.DBName)
		if keeps && !slices.ContainsFunc(s.Retention, func(x Retention) bool { return x.Database == rules.Database }) {
			out.Retention = append(out.Retention, rules)
		}
	}
	return out
}
