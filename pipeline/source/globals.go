package source

import "context"

// A GlobalsKeeper is a Source that can give its server what a dump holds of a whole one: roles, which roles are members of
// which, settings of roles, tablespaces, rights on parameters. Its argument is a whole PartGlobals.
type GlobalsKeeper interface {
	// CompareGlobals says what of it the server lacks, has otherwise, and has alone. Nothing is changed.
	CompareGlobals(ctx context.Context, a Attempt, globals string) (GlobalsDiff, error)
	// RestoreGlobals makes what the server lacks, and returns what it has made. Nothing that is there is changed or dropped.
	// Roles, memberships, settings and rights are made all or none, then one tablespace after the other: after an error a
	// further call makes the rest.
	RestoreGlobals(ctx context.Context, a Attempt, globals string) ([]Global, error)
}

// Kinds of Global.
const (
	GlobalRole       = "role"
	GlobalMembership = "membership" // "ann in staff"
	GlobalSetting    = "setting"    // of a role: "work_mem of ann"
	GlobalTablespace = "tablespace"
	GlobalParameter  = "parameter" // rights on a parameter of the server
	GlobalUnknown    = "statement" // that is not understood, so that nobody but a person runs it
)

// Global is one thing of a whole server. Hashes of passwords are not in its texts.
type Global struct {
	Kind string   `json:"kind"`
	Name string   `json:"name"`
	Want []string `json:"want,omitempty"` // the statements that make it as the dump has it
	Have []string `json:"have,omitempty"` // those that make it as the server has it
	// NoPassword: a role that may log in, of which the dump has no password.
	NoPassword bool `json:"no_password,omitempty"`
}

// GlobalsDiff is how a dump and a server differ.
type GlobalsDiff struct {
	Missing []Global `json:"missing"` // only in the dump: RestoreGlobals makes them
	Differ  []Global `json:"differ"`  // in both, and not the same
	Extra   []Global `json:"extra"`   // only on the server
	// Passwords tells whether the passwords of roles were compared: the dump has them, and they may be read on the server.
	Passwords bool `json:"passwords"`
}
