package local

import (
	"os"
)

// bootID is the beginning of the id of this start of the machine.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || len(b) < 8 {
		return "0"
	}
	return string(b[:8])
}
