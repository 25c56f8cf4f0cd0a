package pgtest

import "syscall"

// enoughMemory is how much a file system in memory must have free to be used: the demo's sample, its copy and its log.
const enoughMemory = 4 << 30

// tempDir returns where a server's directory is made when the caller does not say: in memory when there is plenty and the
// data need not last (a new database is some 300 small files, which costs ext4 more than all the rest), else in the
// system's temporary directory ("").
func tempDir(durable bool) string {
	const memory = "/dev/shm"
	var fs syscall.Statfs_t
	if durable || syscall.Statfs(memory, &fs) != nil || fs.Bavail*uint64(fs.Bsize) < enoughMemory || syscall.Access(memory, 3) != nil {
		return ""
	}
	return memory
}
