package configs

import (
	"fmt"
	"net/mail"
	"slices"
	"time"
)

// Notify is who is told of what needs a person. The same on all nodes: one of them tells, each thing once. The group's settings
// have all of it, too (hooks, mails, rules, heartbeats), where it can be changed while the nodes run.
type Notify struct {
	// Severity is warning (all is told) or critical (only that). Default warning.
	Severity string `yaml:"severity"`
	// After is how long an alarm must last before it is told, and its end, 0s to 1h: what comes within it and has one cause
	// is one message. Default 1m.
	After time.Duration `yaml:"after"`
	// Repeat is after what time an alarm that lasts is told again, 1h to 8760h; 0s: never. Default 24h.
	Repeat time.Duration `yaml:"repeat"`
	// Heartbeat calls an outside watcher.
	Heartbeat Heartbeat `yaml:"heartbeat"`
	// Hooks are web hooks.
	Hooks []Hook `yaml:"hooks"`
	// Mails are mail servers and who gets mail.
	Mails []Mail `yaml:"mails"`
}

// Heartbeat is the call that tells an outside watcher that all is well: there is a quorum, the ledger answers and every
// database has a good backup within its rpo. When it stays away the watcher rings, also when every node is dead.
type Heartbeat struct {
	// URL is called with GET; or a reference env:NAME or file:PATH. Default none.
	URL Secret `yaml:"url"`
	// Every is how often, 10s to 24h. Default 1m.
	Every time.Duration `yaml:"every"`
}

// Hook is a web hook: each message is a POST.
type Hook struct {
	// Name is what logs and commands call it; same alphabet as a database's, unique among hooks and mails.
	Name string `yaml:"name"`
	// URL is where to; or a reference env:NAME or file:PATH. It is never shown.
	URL Secret `yaml:"url"`
	// Secret is a reference env:NAME or file:PATH to what the message is signed with (header Fencepost-Signature). Default:
	// not signed.
	Secret Secret `yaml:"secret"`
	// Template is the body, a Go text/template of the message's fields ID, Kind, Group, At, Title, Cause and Alarms; the
	// function json puts a value in quotes. Default: the message as JSON.
	Template string `yaml:"template"`
	// ContentType is the body's. Default application/json.
	ContentType string `yaml:"content_type"`
}

// setDefaults fills an entry before the file's words are read.
func (h *Hook) setDefaults(string) { *h = Hook{ContentType: "application/json"} }

// Mail is a mail server, and who gets a mail of each message.
type Mail struct {
	// Name is as of a hook.
	Name string `yaml:"name"`
	// Server is host:port.
	Server string `yaml:"server"`
	// Security is starttls (default; required of the server), tls (from the first byte) or none (only to a server on
	// this machine).
	Security string `yaml:"security"`
	// From is the sender's address.
	From string `yaml:"from"`
	// To are the receivers' addresses.
	To []string `yaml:"to"`
	// User logs in. Default: no log-in.
	User string `yaml:"user"`
	// Password is a reference env:NAME or file:PATH to the user's password.
	Password Secret `yaml:"password"`
}

func (m *Mail) setDefaults(string) { *m = Mail{Security: "starttls"} }

// DefaultRule is the name of the rule for all events that have none of their own.
const DefaultRule = "default"

// Events are the kinds of what is told of, as fencepost status -o json and messages name them.
func Events() []string {
	return []string{
		"approval", "audit", "backup", "certificate", "clock", "death", "failed", "kit", "lease", "ledger", "member", "node", "notify", "parked", "quarantine", "quorum",
		"recovery", "replication", "server", "settings", "state", "storage", "stuck", "suspect", "vanished", "voters", "waiting",
	}
}

// Rule says how one kind of event is told, and to whom.
type Rule struct {
	// Name is the kind of event, or default for all that have no rule of their own: approval (something waits for a second
	// person), audit, backup (a database has no good backup within its rpo), certificate, clock, death (of a node), failed (a
	// backup), kit (the newest is out of date), lease, ledger, member, node, notify (a receiver does not answer), parked (a recovery), quarantine, quorum,
	// recovery, replication, server (of the settings; it does not answer), settings, state (the group's own, in a storage), storage, stuck, suspect (a backup), vanished
	// (a database), voters, waiting.
	Name string `yaml:"name"`
	// Severity is warning (it is told), critical (only when it is that) or none (never). Default warning.
	Severity string `yaml:"severity"`
	// After is how long it must last before it is told, and its end, 0s to 1h: what comes within it, has one cause and goes to the
	// same ones is one message. Default 1m.
	After time.Duration `yaml:"after"`
	// Repeat is after what time one that lasts is told again, 1h to 8760h; 0s: never. Default 24h.
	Repeat time.Duration `yaml:"repeat"`
	// To are the hooks and mails of the settings that are told, by name. Default all that there are.
	To []string `yaml:"to"`
}

func (r *Rule) setDefaults(string) {
	*r = Rule{Severity: "warning", After: time.Minute, Repeat: 24 * time.Hour}
}

// Beat is the address of an outside watcher that is told that all is well; see Heartbeat.
type Beat struct {
	// Name is what logs call it; same alphabet as a database's.
	Name string `yaml:"name"`
	// URL is a reference env:NAME, file:PATH or command:PROGRAM to what is called with GET. It is never shown.
	URL Secret `yaml:"url"`
	// Every is how often, 10s to 24h. Default 1m.
	Every time.Duration `yaml:"every"`
}

func (b *Beat) setDefaults(string) { *b = Beat{Every: time.Minute} }

// FileBeat is the name of the heartbeat of a node's file among those of the settings.
const FileBeat = "heartbeat"

// OwnRule tells whether the file says how things are told; else the group's settings do, when they have the rule default.
func (n Notify) OwnRule() bool {
	usual := Default().Notify
	return n.Severity != usual.Severity || n.After != usual.After || n.Repeat != usual.Repeat
}

// Given tells whether anything was written at all.
func (s Secret) Given() bool { return s.raw != "" }

func (c *Config) checkNotify(ps *problems) {
	n := c.Notify
	checkOneOf(ps, "notify.severity", n.Severity, "warning", "critical")
	checkTelling(ps, "notify", n.After, n.Repeat)
	checkDuration(ps, "notify.heartbeat.every", n.Heartbeat.Every, 10*time.Second, 24*time.Hour)
	if problem := n.Heartbeat.URL.problem(true); n.Heartbeat.URL.Given() && problem != "" {
		ps.add("notify.heartbeat.url", "%s", problem)
	}
	checkReceivers(ps, "notify.", n.Hooks, n.Mails, true)
}

func checkTelling(ps *problems, at string, after, repeat time.Duration) {
	checkDuration(ps, at+".after", after, 0, time.Hour)
	if repeat != 0 {
		checkDuration(ps, at+".repeat", repeat, time.Hour, 365*24*time.Hour)
	}
}

func (s *Settings) checkRules(ps *problems) {
	seen := map[string]int{}
	for i, r := range s.Rules {
		at := fmt.Sprintf("rules[%d]", i)
		checkOneOf(ps, at+".name", r.Name, append([]string{DefaultRule}, Events()...)...)
		if j, twice := seen[r.Name]; twice {
			ps.add(at+".name", "is %q, as rules[%d] is: name each event once", r.Name, j)
		}
		seen[r.Name] = i
		checkOneOf(ps, at+".severity", r.Severity, "warning", "critical", "none")
		checkTelling(ps, at, r.After, r.Repeat)
		for j, name := range r.To {
			if !slices.ContainsFunc(s.Hooks, func(h Hook) bool { return h.Name == name }) && !slices.ContainsFunc(s.Mails, func(m Mail) bool { return m.Name == name }) {
				ps.add(fmt.Sprintf("%s.to[%d]", at, j), "is %q, which is none of hooks and mails: name one of the settings; what a node's file has cannot be meant", name)
			}
		}
	}
}

func (s *Settings) checkBeats(ps *problems) {
	seen := map[string]int{}
	for i, b := range s.Heartbeats {
		at := fmt.Sprintf("heartbeats[%d]", i)
		checkItemName(ps, at, b.Name, "heartbeats", seen, i)
		if problem := b.URL.problem(false); problem != "" {
			ps.add(at+".url", "%s", problem)
		}
		checkDuration(ps, at+".every", b.Every, 10*time.Second, 24*time.Hour)
	}
}

// checkReceivers looks at hooks and mails in lists whose paths begin with prefix; literal: a url may be written itself.
func checkReceivers(ps *problems, prefix string, hooks []Hook, mails []Mail, literal bool) {
	seen := map[string]int{}
	for i, h := range hooks {
		at := fmt.Sprintf("%shooks[%d]", prefix, i)
		checkItemName(ps, at, h.Name, prefix+"hooks", seen, i)
		h.check(ps, at, literal)
	}
	seen = map[string]int{}
	for i, m := range mails {
		at := fmt.Sprintf("%smails[%d]", prefix, i)
		checkItemName(ps, at, m.Name, prefix+"mails", seen, i)
		m.check(ps, at)
		for j, h := range hooks {
			if h.Name == m.Name {
				ps.add(at+".name", "is %q, as %shooks[%d] is: give each its own name", m.Name, prefix, j)
			}
		}
	}
}

// check never repeats a url: it may be a secret.
func (h *Hook) check(ps *problems, at string, literal bool) {
	if problem := h.URL.problem(literal); problem != "" {
		ps.add(at+".url", "%s", problem)
	}
	if problem := h.Secret.problem(false); h.Secret.Given() && problem != "" {
		ps.add(at+".secret", "%s", problem)
	}
}

func (m *Mail) check(ps *problems, at string) {
	checkOneOf(ps, at+".security", m.Security, "starttls", "tls", "none")
	host, port, ok := splitAddress(m.Server)
	switch {
	case !ok || port == 0:
		ps.add(at+".server", "is %q, want host:port, such as smtp.example.org:587", m.Server)
	case m.Security == "none" && !loopback(host):
		ps.add(at+".security", "is none, and %s is another machine: choose starttls or tls", host)
	}
	checkMailbox(ps, at+".from", m.From)
	if len(m.To) == 0 {
		ps.add(at+".to", "is empty: give at least one address")
	}
	for j, to := range m.To {
		checkMailbox(ps, fmt.Sprintf("%s.to[%d]", at, j), to)
	}
	if problem := m.Password.problem(false); m.User != "" && problem != "" {
		ps.add(at+".password", "%s", problem)
	}
	if m.User == "" && m.Password.Given() {
		ps.add(at+".user", "is missing, and there is a password")
	}
}

func checkMailbox(ps *problems, path, text string) {
	if a, err := mail.ParseAddress(text); err != nil || a.Address != text {
		ps.add(path, "is %q, want a bare address such as ops@example.org", text)
	}
}
