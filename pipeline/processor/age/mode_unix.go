//go:build !windows

package age

import "io/fs"

// exposed tells whether a file of this mode is open to everyone on the machine.
func exposed(mode fs.FileMode) bool { return mode.Perm()&0o007 != 0 }
