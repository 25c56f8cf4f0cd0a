package home

import "golang.org/x/sys/unix"

// fsType is the magic number of the file system that holds dir.
func fsType(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Type) & 0xffffffff, nil
}

// networkFS names a file system whose locks or mappings are not those of one kernel; empty for all others.
func networkFS(magic int64) string {
	return map[int64]string{
		0x6969: "nfs", 0x517b: "smb", 0xff534d42: "cifs", 0xfe534d42: "smb2", 0x65735546: "fuse", 0x01021997: "9p",
		0x00c36400: "ceph", 0x5346414f: "afs", 0x6b414653: "kafs", 0x73757245: "coda", 0x564c: "ncp", 0x0bd00bd0: "lustre",
		0x19830326: "beegfs", 0x47504653: "gpfs", 0x7461636f: "ocfs2", 0x01161970: "gfs2", 0xaad7aaea: "panfs", 0x786f4256: "vboxsf",
	}[magic]
}
