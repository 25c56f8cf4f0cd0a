package offline

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// kinds are the file systems that judgeDisk has something to say about, and the common good ones.
var kinds = map[uint64]string{
	unix.NFS_SUPER_MAGIC: "nfs", unix.CIFS_SUPER_MAGIC: "cifs", unix.SMB_SUPER_MAGIC: "smb", unix.SMB2_SUPER_MAGIC: "smb", unix.FUSE_SUPER_MAGIC: "fuse",
	unix.V9FS_MAGIC: "9p", unix.CEPH_SUPER_MAGIC: "ceph", unix.TMPFS_MAGIC: "tmpfs", unix.RAMFS_MAGIC: "ramfs", unix.OVERLAYFS_SUPER_MAGIC: "overlay",
	unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs", 0x2fc12fc1: "zfs",
}

// examineDisk looks at the file system below path.
func examineDisk(path string) []Exam {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return []Exam{{What: "disk", About: path, State: ExamSkipped, Found: err.Error()}}
	}
	kind, known := kinds[uint64(uint32(st.Type))]
	if !known {
		kind = fmt.Sprintf("of kind %#x", uint32(st.Type))
	}
	return judgeDisk(path, kind, st.Bavail*uint64(st.Bsize))
}

func exposed(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }
