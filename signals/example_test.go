package signals_test

import (
	"context"
	"fmt"

	"github.com/fencepost/fencepost/signals"
)

// A host that watches its group. What delivers is the group; here it is the example itself.
func Example() {
	router := signals.NewRouter(signals.Options{})
	seen := make(chan string)
	watch := signals.Handle(func(_ context.Context, s signals.Signal) error {
		f := s.Facts()
		seen <- fmt.Sprintf("%s: %s (%s), %d members left", s.Kind(), f.Member.Node, f.Evidence, len(f.View.Members))
		return nil
	})
	if err := router.AddActionFactory(watch, signals.FailureNotification, signals.PlannedShutdown); err != nil {
		fmt.Println(err)
		return
	}
	if err := router.Start(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	defer router.Stop()

	left := signals.View{Version: 43, Members: []signals.Member{{Node: "n1"}, {Node: "n2"}}}
	err := router.Deliver(signals.NewNotice(signals.Facts{
		Kind: signals.FailureNotification, Member: signals.Member{Node: "n3"}, Evidence: signals.Refused, View: left,
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(<-seen)
	// Output: failure: n3 (refused), 2 members left
}

// A recovery under a fence: adopt what the dead member was working on, or give it back.
func ExampleHandleRecovery() {
	finish := func(context.Context, signals.Claim, uint64) error { return nil } // the host's work
	factory := signals.HandleRecovery(func(ctx context.Context, s signals.FailureRecoverySignal) error {
		fence, err := s.Acquire(ctx)
		if err != nil {
			return err
		}
		ctx = fence.Context() // ends when the fence is lost
		orphans, err := fence.Orphans(ctx)
		if err != nil {
			return err
		}
		for _, o := range orphans {
			claim, err := fence.Adopt(ctx, o)
			if err != nil {
				return err
			}
			if err := finish(ctx, claim, fence.Token()); err != nil {
				return err // the fence stays, the signal comes again
			}
			if err := fence.End(ctx, claim, signals.Complete); err != nil {
				return err
			}
		}
		return nil // lowers the fence
	})
	router := signals.NewRouter(signals.Options{})
	fmt.Println(router.AddRecoveryFactory("payments", factory, signals.WithExclusion(signals.ExclusionToken)))
	list, _ := router.Components()
	fmt.Println(list[0].Name, list[0].Exclusion)
	// Output:
	// <nil>
	// payments token
}
