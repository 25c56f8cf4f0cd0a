package postgres

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// memoryFile makes a file that has no name and is in no file system; it is gone when it is closed here and in children.
func memoryFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("fencepost", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a file in memory: %w", err)
	}
	return os.NewFile(uintptr(fd), "memory"), nil
}

// inheritedFile is the path under which a child, and its own children, open the first extra file that it inherits.
const inheritedFile = "/proc/self/fd/3"
