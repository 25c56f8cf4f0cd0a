package api

// Role is what somebody may do.
type Role string

// Roles, each of which may all that those before it may.
const (
	RoleViewer   Role = "viewer"   // look at everything but accounts and the audit trail
	RoleOperator Role = "operator" // make, restore, verify and delete backups, cancel, run and pause what recurs
	RoleAdmin    Role = "admin"    // decide about nodes, fences and recoveries; keys, accounts, the audit trail
)

// Roles are all of them, the least first.
func Roles() []Role { return []Role{RoleViewer, RoleOperator, RoleAdmin} }

// Known tells whether there is such a role.
func (r Role) Known() bool { return r.rank() > 0 }

// May tells whether somebody of role r may do what needs the role least.
func (r Role) May(least Role) bool { return r.Known() && least.Known() && r.rank() >= least.rank() }

func (r Role) rank() int {
	for i, known := range Roles() {
		if r == known {
			return i + 1
		}
	}
	return 0
}

// Least is the lower one of two roles.
func Least(a, b Role) Role {
	if a.May(b) {
		return b
	}
	return a
}
