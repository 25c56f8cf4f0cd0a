//go:build !fencepost_next

package configs

// laterApprovals are the operations of an Approval that came with a later protocol of the group than the first; see later.
func laterApprovals() []string { return nil }

// later is the protocol that a key of a kind of settings came with, or a value of one (fmt.Sprint of it); 0 for those that were
// there from the first on. A version that adds some lists them here.
func later(kind, key, value string) uint32 { return 0 }
