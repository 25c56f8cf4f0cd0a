//go:build !linux

package s3

import "syscall"

// dieWithParent: this system has no such thing; TestMain ends the child.
func dieWithParent() *syscall.SysProcAttr { return nil }
