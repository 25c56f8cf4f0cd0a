package s3

import "syscall"

// dieWithParent makes a child end with this process, however that ends.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
