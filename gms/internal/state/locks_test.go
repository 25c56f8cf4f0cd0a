package state

import (
	"strings"
	"testing"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

func TestRule21_PollLocksAreFirstComeFirstServed(t *testing.T) {
	r := newRig(t)
	a, b, c := r.open("A1"), r.open("B1"), r.open("C1")
	lock := &wire.Lock{Name: "/SBOI/backup", Wait: true}
	token := r.ok(a, lock).GetToken()
	if got := changeOf[LockGranted](r); got.Run != a || got.Token != token || got.Name != lock.Name {
		t.Errorf("the grant shows as %+v", got)
	}
	if got := r.want(wire.Code_CODE_BUSY, b, &wire.Lock{Name: lock.Name}); !isRun(got.GetHolder(), a) {
		t.Errorf("the holder is %x", got.GetHolder())
	}
	r.want(wire.Code_CODE_QUEUED, c, lock)
	r.want(wire.Code_CODE_QUEUED, b, lock)
	r.want(wire.Code_CODE_QUEUED, c, lock) // once is enough
	r.want(wire.Code_CODE_BUSY, a, lock)   // a run does not wait for itself
	for _, next := range []RunID{c, b} {
		held, _ := r.m.Lock(lock.Name)
		holder, _ := RunIDOf(held.GetRun())
		r.want(wire.Code_CODE_NOT_HOLDER, holder, &wire.Unlock{Name: lock.Name, Token: held.GetToken() + 1})
		r.want(wire.Code_CODE_NOT_HOLDER, next, &wire.Unlock{Name: lock.Name, Token: held.GetToken()})
		r.ok(holder, &wire.Unlock{Name: lock.Name, Token: held.GetToken()})
		got := changeOf[LockGranted](r)
		if got.Run != next || got.Token <= held.GetToken() {
			t.Fatalf("next is %+v, want %v", got, next)
		}
		if freed := changeOf[LockFreed](r); freed.Run != holder || freed.Token != held.GetToken() {
			t.Errorf("freed is %+v", freed)
		}
	}
	held, _ := r.m.Lock(lock.Name)
	r.ok(b, &wire.Unlock{Name: lock.Name, Token: held.GetToken()})
	if _, ok := r.m.Lock(lock.Name); ok || len(r.m.Locks()) > 0 {
		t.Error("a free lock leaves a trace")
	}
}

func TestRule21_GivingUpAWaitSaysWhetherItWasGranted(t *testing.T) {
	r := newRig(t)
	a, b := r.open("A1"), r.open("B1")
	giveUp := &wire.Unlock{Name: "l"}
	r.want(wire.Code_CODE_NOT_FOUND, b, giveUp)
	token := r.ok(a, &wire.Lock{Name: "l"}).GetToken()
	r.want(wire.Code_CODE_NOT_FOUND, b, giveUp)
	r.want(wire.Code_CODE_QUEUED, b, &wire.Lock{Name: "l", Wait: true})
	if got := r.ok(b, giveUp); got.GetToken() != 0 {
		t.Errorf("the wait was given up with token %d", got.GetToken())
	}
	r.ok(a, &wire.Unlock{Name: "l", Token: token})
	if _, held := r.m.Lock("l"); held {
		t.Fatal("the lock went to who had given up")
	}
	token = r.ok(a, &wire.Lock{Name: "l"}).GetToken()
	r.want(wire.Code_CODE_QUEUED, b, &wire.Lock{Name: "l", Wait: true})
	r.ok(a, &wire.Unlock{Name: "l", Token: token})
	late := r.ok(b, giveUp)
	held, ok := r.m.Lock("l")
	if !ok || late.GetToken() == 0 || held.GetToken() != late.GetToken() {
		t.Fatalf("granted meanwhile: the answer is %v, the lock %v", late, held)
	}
	r.ok(b, &wire.Unlock{Name: "l", Token: late.GetToken()})
}

func TestRule21_ALockEndsByItselfAfterItsLimit(t *testing.T) {
	r := newRig(t)
	a, b := r.open("A1"), r.open("B1")
	token := r.ok(a, &wire.Lock{Name: "l"}).GetToken()
	r.want(wire.Code_CODE_QUEUED, b, &wire.Lock{Name: "l", Wait: true})
	r.ok(RunID{}, &wire.ExpireLock{Name: "l", Token: token})
	if changeOf[LockGranted](r).Run != b {
		t.Error("the next one has not got it")
	}
	r.want(wire.Code_CODE_NOT_HOLDER, RunID{}, &wire.ExpireLock{Name: "l", Token: token}) // late: another holds it
	r.want(wire.Code_CODE_NOT_HOLDER, a, &wire.Unlock{Name: "l", Token: token})
}

func TestRule21_ClosingFreesLocksAndWaits(t *testing.T) {
	r := newRig(t)
	a, b, c := r.open("A1"), r.open("B1"), r.open("C1")
	r.ok(a, &wire.Lock{Name: "one"})
	r.ok(a, &wire.Lock{Name: "two"})
	r.ok(c, &wire.Lock{Name: "three"})
	for _, name := range []string{"one", "three"} {
		r.want(wire.Code_CODE_QUEUED, b, &wire.Lock{Name: name, Wait: true})
	}
	r.want(wire.Code_CODE_QUEUED, a, &wire.Lock{Name: "three", Wait: true})
	r.close("A1")
	if l, _ := r.m.Lock("one"); !isRun(l.GetRun(), b) {
		t.Error("the next waiter has not got the lock of the closed run")
	}
	if _, held := r.m.Lock("two"); held {
		t.Error("a closed run holds a lock")
	}
	if l, _ := r.m.Lock("three"); len(l.GetWaiters()) != 1 {
		t.Error("a closed run waits for a lock")
	}
	r.close("C1")
	r.close("B1")
	if len(r.m.Locks()) > 0 || len(r.m.locks.byRun) > 0 {
		t.Errorf("all are gone, but there are locks: %v, %v", r.m.Locks(), r.m.locks.byRun)
	}
}

func TestLocksAreBounded(t *testing.T) {
	r := newRig(t)
	a := r.open("A1")
	for _, bad := range []string{"", strings.Repeat("x", MaxName+1), "\xff"} {
		if got := r.do(a, &wire.Lock{Name: bad}); got.GetCode() != wire.Code_CODE_INVALID {
			t.Errorf("lock %q: %v", bad, got)
		}
	}
	r.want(wire.Code_CODE_INVALID, RunID{}, &wire.Lock{Name: "l"})
}
