package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// recoverPayments settles what the dead run left: it adopts each payment, books it with book, and ends it.
func recoverPayments(book func(s signals.FailureRecoverySignal, f signals.Fence, c signals.Claim) error) signals.ActionFactory {
	return signals.HandleRecovery(func(ctx context.Context, s signals.FailureRecoverySignal) error {
		fence, err := s.Acquire(ctx)
		if err != nil {
			return err
		}
		ctx = fence.Context()
		orphans, err := fence.Orphans(ctx)
		if err != nil {
			return err
		}
		for _, o := range orphans {
			claim, err := fence.Adopt(ctx, o)
			if err != nil {
				return err
			}
			if err := book(s, fence, claim); err != nil {
				return err
			}
			if err := fence.End(ctx, claim, signals.Complete); err != nil {
				return err
			}
		}
		return nil // lowers the fence
	})
}

// Three nodes; the one that works on an invoice dies. One of the others is told, and only one.
func Example_oneRecovererAmongThree() {
	t := newTeam()
	defer t.stop()
	told := make(chan string, 10)
	for _, name := range []string{"n1", "n2", "n3"} {
		t.start(name, func(r *signals.Router) error {
			return r.AddRecoveryFactory("payments", recoverPayments(func(s signals.FailureRecoverySignal, _ signals.Fence, c signals.Claim) error {
				told <- fmt.Sprintf("%s of %s, round trip %d", c.Item, s.Appointment().Node, c.RoundTrip)
				return nil
			}))
		})
	}
	t.claim("n2", "payments", "invoice-7")
	t.nodes["n2"].kill()

	fmt.Println("recovered:", <-told)
	t.ended("n1", 1)
	fmt.Println("and by others:", len(told))
	// Output:
	// recovered: invoice-7 of n2, round trip 2
	// and by others: 0
}

// table is a table of jobs, as a database would keep it. Each row has the token of whoever wrote it last.
type table struct {
	mu   sync.Mutex
	rows map[string]row
}

type row struct {
	state string
	token uint64
}

// update is UPDATE jobs SET state = $2, token = $3 WHERE id = $1 AND token <= $3, and tells how many rows it met.
func (t *table) update(id, state string, token uint64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows[id].token > token {
		return 0
	}
	t.rows[id] = row{state, token}
	return 1
}

// A table that checks tokens: the write of a claim's holder names the token, and a smaller one than that of the row meets no
// row. The recoverer's is larger; so what the dead run still wants to write is refused, however late it comes.
func Example_tokenAgainstATable() {
	t := newTeam()
	defer t.stop()
	jobs := &table{rows: map[string]row{"job-1": {state: "new"}}}
	for _, name := range []string{"n1", "n2"} {
		t.start(name, func(r *signals.Router) error {
			return r.AddRecoveryFactory("jobs", recoverPayments(func(_ signals.FailureRecoverySignal, _ signals.Fence, c signals.Claim) error {
				if jobs.update(c.Item, "done again", c.Token) == 0 {
					return signals.ErrFenceLost // somebody came after us
				}
				return nil
			}))
		})
	}
	claim := t.claim("n2", "jobs", "job-1")
	fmt.Println("rows begun by the first:", jobs.update(claim.Item, "working", claim.Token))
	t.nodes["n2"].kill() // for the others; in this process its worker still stands there, with its token
	t.ended("n1", 1)
	fmt.Println("rows written late by the first:", jobs.update(claim.Item, "done", claim.Token))
	fmt.Println("job-1 is", jobs.rows["job-1"].state)
	// Output:
	// rows begun by the first: 1
	// rows written late by the first: 0
	// job-1 is done again
}

// A resource that cannot check tokens, such as a printer: Acquire returns only when every former holder's lease has run out,
// so each stops by itself before. The price is a pause of the lease's length.
func Example_exclusionByLease() {
	t := newTeam()
	defer t.stop()
	holder := make(chan gms.Standing, 10)
	printer := func(r *signals.Router) error {
		return r.AddRecoveryFactory("printer", signals.HandleRecovery(func(ctx context.Context, s signals.FailureRecoverySignal) error {
			if _, err := s.Acquire(ctx); err != nil {
				return err
			}
			standing, _ := t.nodes["n2"].Group.Standing()
			holder <- standing
			return nil
		}), signals.WithExclusion(signals.ExclusionLease))
	}
	t.start("n1", printer)
	t.start("n2", printer)
	t.nodes["n2"].kill() // it is cut off, and does not know that others think it dead
	standing, _ := t.nodes["n2"].Group.Standing()
	fmt.Println("just after its death the first may still print:", standing == gms.Held || standing == gms.Suspect)
	standing = <-holder
	fmt.Println("when the second begins, it may still print:", standing == gms.Held || standing == gms.Suspect)
	// Output:
	// just after its death the first may still print: true
	// when the second begins, it may still print: false
}

// A node is started again while work of its last run is not settled. Its component waits at the fence before it takes new
// work, so that it does not meet what is half done; recoveries themselves never wait.
func Example_netiquetteAtStart() {
	t := newTeam()
	defer t.stop()
	home, err := os.MkdirTemp("", "n2-")
	must(err)
	defer os.RemoveAll(home)
	asked := make(chan struct{})
	payments := func(r *signals.Router) error {
		return r.AddRecoveryFactory("payments", recoverPayments(func(_ signals.FailureRecoverySignal, _ signals.Fence, c signals.Claim) error {
			<-asked // a long recovery
			fmt.Println("recovered:", c.Item)
			return nil
		}))
	}
	lasting := func(c *gms.Config) { c.Home = home }
	t.start("n1", payments)
	n2 := t.start("n2", payments, lasting)
	t.claim("n2", "payments", "invoice-7")
	n2.Manager.Stop()
	must(n2.Group.Stop(t.ctx)) // in order, but with work left, which goes to recovery like any other

	n2 = t.start("n2", payments, lasting)
	fenced, err := n2.Manager.IsFenced(t.ctx, "payments", "n2")
	must(err)
	fmt.Println("fenced at its start:", fenced)
	close(asked)
	must(n2.Manager.AwaitUnfenced(t.ctx, "payments"))
	fmt.Println("new work")
	// Output:
	// fenced at its start: true
	// recovered: invoice-7
	// new work
}

// A process that watches another one knows of its death before any time-out. Its node has the role watchdog: it is told of
// nothing, keeps nothing and decides nothing; the group looks for itself, so a false word harms nobody.
func Example_watchdogProcess() {
	t := newTeam()
	defer t.stop()
	failed := make(chan string, 10)
	t.start("n1", func(r *signals.Router) error {
		return r.AddActionFactory(signals.Handle(func(_ context.Context, s signals.Signal) error {
			failed <- s.Facts().Member.Node
			return nil
		}), signals.FailureNotification)
	})
	nothing := func(*signals.Router) error { return nil }
	n2 := t.start("n2", nothing)
	dog := t.start("dog", nothing, func(c *gms.Config) { c.Role = signals.Watchdog })

	_, run := n2.Group.Self() // as the watched process says it
	err := dog.Group.AnnounceObservedFailure(t.ctx, "n2", run, "it looks strange")
	fmt.Println("of a living one:", errors.Is(err, gms.ErrAlive))
	n2.kill()
	err = dog.Group.AnnounceObservedFailure(t.ctx, "n2", run, "exit status 137")
	fmt.Println("of a dead one:", err)
	fmt.Println("failed:", <-failed)
	// Output:
	// of a living one: true
	// of a dead one: <nil>
	// failed: n2
}

// What a member says of itself can still be read by whoever recovers its work: where its own files are, for one.
func Example_memberDetails() {
	t := newTeam()
	defer t.stop()
	found := make(chan string, 1)
	for _, name := range []string{"n1", "n2"} {
		t.start(name, func(r *signals.Router) error {
			return r.AddRecoveryFactory("payments", signals.HandleRecovery(func(ctx context.Context, s signals.FailureRecoverySignal) error {
				if _, err := s.Acquire(ctx); err != nil {
					return err
				}
				dead := s.Facts().Member
				found <- fmt.Sprintf("%s in %s, on shelf %s", dead.Node, dead.Details["journal"], dead.Details["shelf"])
				return nil
			}))
		}, func(c *gms.Config) { c.Details = map[string][]byte{"journal": []byte("/nfs/journal/" + name)} })
	}
	must(t.nodes["n2"].Group.SetDetail(t.ctx, "shelf", []byte("4"))) // later, beside what it joined with
	t.nodes["n2"].kill()
	fmt.Println("the journal of", <-found)
	// Output:
	// the journal of n2 in /nfs/journal/n2, on shelf 4
}

// A dead node's components are recovered independently of each other, each by a member that has it.
func Example_severalComponents() {
	t := newTeam()
	defer t.stop()
	by := make(chan string, 10)
	component := func(r *signals.Router, node, name string) error {
		return r.AddRecoveryFactory(name, recoverPayments(func(_ signals.FailureRecoverySignal, _ signals.Fence, c signals.Claim) error {
			by <- name + ": " + c.Item + " by " + node
			return nil
		}))
	}
	t.start("n1", func(r *signals.Router) error { return component(r, "n1", "payments") })
	t.start("n3", func(r *signals.Router) error { return component(r, "n3", "mails") })
	t.start("n2", func(r *signals.Router) error {
		return errors.Join(component(r, "n2", "payments"), component(r, "n2", "mails"))
	})
	t.claim("n2", "payments", "invoice-7")
	t.claim("n2", "mails", "mail-1")
	t.nodes["n2"].kill()
	for range 2 {
		fmt.Println(<-by)
	}
	// Unordered output:
	// mails: mail-1 by n3
	// payments: invoice-7 by n1
}

// The host's own selector, here: who has the most room. It runs on the leader, when a run is about to be closed.
func Example_ownSelector() {
	t := newTeam()
	defer t.stop()
	room := map[string]int{"n1": 1, "n2": 5, "n3": 3}
	by := make(chan string, 1)
	for _, name := range []string{"n1", "n2", "n3"} {
		t.start(name, func(r *signals.Router) error {
			return r.AddRecoveryFactory("payments", recoverPayments(func(signals.FailureRecoverySignal, signals.Fence, signals.Claim) error {
				by <- name
				return nil
			}))
		}, func(c *gms.Config) { c.Order = mostRoom(room) })
	}
	t.claim("n2", "payments", "invoice-7")
	t.nodes["n2"].kill()
	fmt.Println("recovered by", <-by)
	// Output:
	// recovered by n3
}

func mostRoom(room map[string]int) gms.Order {
	return func(_ string, _ signals.Member, candidates []signals.Member) (runs []string) {
		for want := 10; want > 0; want-- {
			for _, c := range candidates {
				if room[c.Node] == want {
					runs = append(runs, c.Run)
				}
			}
		}
		return runs
	}
}
