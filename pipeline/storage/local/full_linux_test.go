package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// fullEnv makes this test binary a process that fills a file system of 1 MiB, mounted for it alone, at the folder it names.
const fullEnv = "FENCEPOST_LOCAL_TEST_FULL"

// A real full disk: the Put fails for good and says so, nothing is left, and small objects fit afterwards; then the disk
// is made read-only, which root cannot overlook either. It is a tmpfs in a mount namespace of a child; where the kernel
// gives an ordinary user none, the test is skipped, and the classification is tested without a disk.
func TestDiskFullAndReadOnly(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), fullEnv+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || strings.HasPrefix(string(out), "no mount:") {
		t.Skipf("this machine does not let the test mount a file system: %v %s", err, out)
	}
	if err != nil || string(out) != "ok\n" {
		t.Errorf("the child says %s, %v", out, err)
	}
}

func childMain() {
	if root := os.Getenv(fullEnv); root != "" {
		if err := fillDisk(root); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("ok")
		os.Exit(0)
	}
}

func fillDisk(root string) error {
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("no mount: %w", err)
	}
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "size=1m"); err != nil {
		return fmt.Errorf("no mount: %w", err)
	}
	s, err := Open(Options{Root: root})
	if err != nil {
		return err
	}
	ctx := context.Background()
	_, err = s.Put(ctx, "a/data", io.LimitReader(zeros{}, 5<<20), storage.Condition{})
	if !errors.Is(err, storage.ErrPermanent) || !errors.Is(err, storage.ErrFull) || !strings.Contains(err.Error(), "disk full, ") || strings.Contains(err.Error(), "unknown") {
		return fmt.Errorf("put on a full disk: %v", err)
	}
	if _, err := s.Stat(ctx, "a/data"); !errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("stat: %v", err)
	}
	if _, err := s.Put(ctx, "a/data", io.LimitReader(zeros{}, 512<<10), storage.Condition{}); err != nil {
		return fmt.Errorf("put of half the size of the disk, so the failed one has left something: %w", err)
	}
	return readOnlyDisk(ctx, s, root)
}

func readOnlyDisk(ctx context.Context, s *Storage, root string) error {
	if err := syscall.Mount("none", root, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("remount: %w", err)
	}
	if _, err := s.Put(ctx, "b", strings.NewReader("x"), storage.Condition{}); !errors.Is(err, storage.ErrPermanent) {
		return fmt.Errorf("put on a read-only disk: %v", err)
	}
	if err := s.Delete(ctx, "a/data"); !errors.Is(err, storage.ErrPermanent) {
		return fmt.Errorf("delete on a read-only disk: %v", err)
	}
	if _, err := Open(Options{Root: root}); !errors.Is(err, storage.ErrPermanent) || !strings.Contains(err.Error(), "is not writable") {
		return fmt.Errorf("open of a read-only disk: %v", err)
	}
	reading, err := Open(Options{Root: root, ReadOnly: true})
	if err != nil {
		return err
	}
	_, err = reading.Stat(ctx, "a/data")
	return err
}
