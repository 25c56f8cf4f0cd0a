package home

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// page is the mapped page of a generation. Its file is written whole before it gets its name and is never cut, so that an
// access cannot fault; who has it mapped keeps it after it was swept.
type page struct{ mem []byte }

func createPage(path string, gen uint64, seats int) error {
	b := make([]byte, pageSize(seats))
	copy(b, pageMagic)
	binary.NativeEndian.PutUint64(b[genAt:], gen)
	return writeFile(path, b)
}

func openPage(path string) (*page, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open page: %w", err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("open page: %w", err)
	}
	if fi.Size() < int64(pageSize(0)) || fi.Size() > int64(pageSize(1<<16)) {
		return nil, fmt.Errorf("open page %s: its size is %d", path, fi.Size())
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, int(fi.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map page: %w", err)
	}
	if string(mem[:len(pageMagic)]) != pageMagic {
		return nil, errors.Join(fmt.Errorf("open page %s: not a page", path), unix.Munmap(mem))
	}
	return &page{mem: mem}, nil
}

func (p *page) close() error { return unix.Munmap(p.mem) }

func (p *page) winner() *uint32 { return (*uint32)(unsafe.Pointer(&p.mem[winnerAt])) }

// fail makes cause the first, unless there is one; it says whether it did. The slot is the caller's own.
func (p *page) fail(slot int, cause string) (bool, error) {
	at := slotAt(slot)
	if at+slotSize > len(p.mem) {
		return false, fmt.Errorf("mark failed: the page has no slot %d", slot)
	}
	if atomic.LoadUint32(p.winner()) != 0 {
		return false, nil
	}
	cause = tidyCause(cause)
	n := copy(p.mem[at+causeAt:at+slotSize], cause)
	binary.NativeEndian.PutUint32(p.mem[at+lengthAt:], uint32(n))
	won := atomic.CompareAndSwapUint32(p.winner(), 0, uint32(slot)+1)
	p.wake()
	return won, nil
}

// cause is the first cause, if the generation has failed.
func (p *page) cause() (string, bool) {
	w := atomic.LoadUint32(p.winner())
	if w == 0 {
		return "", false
	}
	at := slotAt(int(w) - 1)
	if at+slotSize > len(p.mem) {
		return "the page names a cause that it does not hold", true
	}
	n := min(binary.NativeEndian.Uint32(p.mem[at+lengthAt:]), maxCause)
	return string(p.mem[at+causeAt : at+causeAt+int(n)]), true
}

func (p *page) beatCell(slot int) *uint64 {
	at := slotAt(slot)
	if at+slotSize > len(p.mem) {
		return new(uint64)
	}
	return (*uint64)(unsafe.Pointer(&p.mem[at]))
}

func (p *page) beat(slot int)         { atomic.AddUint64(p.beatCell(slot), 1) }
func (p *page) beats(slot int) uint64 { return atomic.LoadUint64(p.beatCell(slot)) }
func (p *page) clearBeats(slot int)   { atomic.StoreUint64(p.beatCell(slot), 0) }

const (
	futexWait = 0
	futexWake = 1
)

// wait returns when the generation has failed, somebody woke the waiters, or after at most d.
func (p *page) wait(d time.Duration) {
	if atomic.LoadUint32(p.winner()) != 0 {
		return
	}
	ts := unix.NsecToTimespec(d.Nanoseconds())
	// Whatever it returns, the caller looks again.
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(p.winner())), futexWait, 0, uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// wake wakes all waiters of all processes.
func (p *page) wake() {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(p.winner())), futexWake, 1<<30, 0, 0, 0)
}
