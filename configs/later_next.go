//go:build fencepost_next

package configs

// laterApprovals has an operation that the build without the tag does not know: a program of that version would let pass what
// takes a second person.
func laterApprovals() []string { return []string{"rehearsal"} }

func later(kind, key, value string) uint32 {
	if kind == "approval" && key == "name" && value == "rehearsal" {
		return 2
	}
	return 0
}
