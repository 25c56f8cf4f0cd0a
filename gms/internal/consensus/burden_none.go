//go:build !chaos

package consensus

// burden is what each write to the log carries in programs that package chaos builds, with the tag chaos: nothing in any other.
func burden() {}
