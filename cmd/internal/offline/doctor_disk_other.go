//go:build !linux

package offline

import (
	"io/fs"
	"runtime"
)

// examineDisk cannot look at file systems here.
func examineDisk(path string) []Exam {
	return []Exam{{What: "disk", About: path, State: ExamSkipped, Found: "file systems are not looked at on " + runtime.GOOS}}
}

func exposed(info fs.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0
}
