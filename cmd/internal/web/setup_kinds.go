package web

import "strings"

// settingKind is a kind of settings with the fields of its form. What has no field here is in the form as JSON: a key that a
// later version adds can be set before it has one.
type settingKind struct {
	Kind, Plural string
	What         string // one sentence
	Fields       []settingField
}

// named is the key that holds a setting's name.
func (k settingKind) named() string {
	if k.Kind == "retention" {
		return "database"
	}
	return "name"
}

// Titled is the kind as a heading begins.
func (k settingKind) Titled() string { return strings.ToUpper(k.Kind[:1]) + k.Kind[1:] }

// New is the offer to add one.
func (k settingKind) New() string {
	if strings.ContainsAny(k.Kind[:1], "aeiou") {
		return "Add an " + k.Kind
	}
	return "Add a " + k.Kind
}

// settingField is a key with a field of its own.
type settingField struct {
	Key, Label, Hint   string
	Options            []string // one of these
	Number, List, Tick bool
}

var settingKinds = []settingKind{
	{"storage", "Storages", "Where backups go.", []settingField{
		{Key: "kind", Label: "Kind", Options: []string{"local", "s3", "dropbox"}},
		{Key: "path", Label: "Directory", Hint: "local: the absolute path, the same on each node, and of a disk that all share; dropbox: a folder"},
		{Key: "endpoint", Label: "Address", Hint: "s3: https://host"}, {Key: "region", Label: "Region", Hint: "s3"}, {Key: "bucket", Label: "Bucket", Hint: "s3"}, {Key: "prefix", Label: "Prefix", Hint: "s3"},
		{Key: "access_key", Label: "Access key", Hint: "a reference: env:NAME, file:PATH or command:PROGRAM"}, {Key: "secret_key", Label: "Secret key", Hint: "a reference, too: the secret itself is never kept here"},
		{Key: "append_only", Label: "Nothing there can be deleted", Tick: true},
	}},
	{"server", "Servers", "Their databases are found by asking them each hour.", []settingField{
		{Key: "dsn", Label: "Connection", Hint: "to any of its databases: a reference such as file:/etc/fencepost/pg1.dsn, or a text without a password"},
		{Key: "include", Label: "Databases", List: true, Hint: "patterns with commas between them; empty: all"}, {Key: "exclude", Label: "But not", List: true, Hint: "empty: postgres"},
		{Key: "max_dumps", Label: "Backups at the same time", Number: true}, {Key: "rpo", Label: "A good backup every", Hint: "such as 26h"},
	}},
	{"database", "Databases", "Single ones, which no server finds.", []settingField{
		{Key: "dsn", Label: "Connection", Hint: "a reference such as file:/etc/fencepost/shop.dsn, or a text without a password"}, {Key: "dbname", Label: "Its name on the server", Hint: "empty: that of the connection"},
		{Key: "rpo", Label: "A good backup every", Hint: "such as 26h; 0s: it is not watched"}, {Key: "needs", Label: "Labels that a node must carry", List: true},
	}},
	{"schedule", "Schedules", "What recurs.", []settingField{
		{Key: "kind", Label: "Kind", Options: []string{"backup", "verify"}}, {Key: "database", Label: "Database"}, {Key: "cron", Label: "When", Hint: "five fields, or @daily and its like"},
		{Key: "zone", Label: "Whose wall clock", Hint: "such as Europe/Paris; empty: UTC"}, {Key: "storages", Label: "Storages", List: true, Hint: "empty: all"}, {Key: "disabled", Label: "It makes nothing", Tick: true},
	}},
	{"retention", "Retention", "What is kept of a database; without, everything.", []settingField{
		{Key: "last", Label: "Newest ones", Number: true}, {Key: "daily", Label: "Days", Number: true}, {Key: "weekly", Label: "Weeks", Number: true}, {Key: "monthly", Label: "Months", Number: true},
		{Key: "yearly", Label: "Years", Number: true}, {Key: "max_age", Label: "At most as old as", Hint: "such as 8760h"},
	}},
	{"binding", "Bindings", "Users who are operators of some databases, whatever their role.", []settingField{
		{Key: "user", Label: "User"}, {Key: "labels", Label: "Databases with one of these labels", List: true}, {Key: "as", Label: "As", List: true, Hint: "source, target; empty: both"},
	}},
	{"approval", "Approvals", "What nobody does alone: one is called delete, restore, storage, ledger or node. To change them takes a second person, too.", []settingField{
		{Key: "within", Label: "How long a request waits", Hint: "such as 2h; empty: 24h"},
	}},
	{"hook", "Web hooks", "Who is told of alarms by a call.", []settingField{
		{Key: "url", Label: "Address", Hint: "a reference such as file:/etc/fencepost/chat.url: it is a secret"}, {Key: "secret", Label: "Signed with", Hint: "a reference; empty: not signed"},
		{Key: "template", Label: "Template", Hint: "empty: the message as JSON"},
	}},
	{"mail", "Mail", "Who is told of alarms by mail.", []settingField{
		{Key: "server", Label: "Server", Hint: "host:port"}, {Key: "security", Label: "Security", Options: []string{"starttls", "tls", "none"}}, {Key: "from", Label: "From"}, {Key: "to", Label: "To", List: true},
		{Key: "user", Label: "User", Hint: "empty: no log-in"}, {Key: "password", Label: "Password", Hint: "a reference such as file:/etc/fencepost/smtp.password"},
	}},
	{"rule", "Rules", "Which alarms are told to whom, and when. One is called default, or as the kind of alarm is: backup, failed, member and so on.", []settingField{
		{Key: "severity", Label: "Told", Options: []string{"warning", "critical", "none"}}, {Key: "after", Label: "When it has lasted", Hint: "such as 5m; empty: 1m"},
		{Key: "repeat", Label: "Again after", Hint: "such as 6h; 0s: never; empty: 24h"}, {Key: "to", Label: "To whom", List: true, Hint: "hooks and mails of the settings; empty: all"},
	}},
	{"heartbeat", "Heartbeats", "Outside watchers that are called while all is well, and ring when that stays away.", []settingField{
		{Key: "url", Label: "Address", Hint: "a reference such as file:/etc/fencepost/watchdog.url: it is a secret"}, {Key: "every", Label: "How often", Hint: "such as 30s; empty: 1m"},
	}},
}
