package recovery_test

import (
	"context"
	"fmt"

	"github.com/fencepost/fencepost/recovery"
	"github.com/fencepost/fencepost/signals"
)

// oneJob is the smallest log there is: it appoints this member to one recovery and believes what it is told.
type oneJob struct {
	recovery.Log // the calls that the example does not make
	ref          recovery.Ref
	ended        chan struct{}
}

func (l *oneJob) Recoveries() ([]recovery.Appointed, <-chan struct{}) {
	select {
	case <-l.ended:
		return nil, nil
	default:
		return []recovery.Appointed{{Ref: l.ref}}, l.ended
	}
}

func (l *oneJob) Acquire(_ context.Context, ref recovery.Ref) (recovery.Grant, error) {
	return recovery.Grant{Held: recovery.Held{Ref: ref, Token: 7}}, nil
}

func (l *oneJob) Renew(recovery.Grant, func() bool) (context.Context, func()) {
	return context.Background(), func() {}
}

func (l *oneJob) Orphans(context.Context, recovery.Held) ([]signals.Orphan, error) {
	return []signals.Orphan{{Claim: signals.Claim{Component: "payments", Item: "B12", RoundTrip: 1}}}, nil
}

func (l *oneJob) EndClaim(_ context.Context, _ recovery.Held, c signals.Claim, how signals.How) error {
	fmt.Println(how, c.Item)
	return nil
}

func (l *oneJob) Release(_ context.Context, held recovery.Held) error {
	fmt.Println("released under token", held.Token)
	close(l.ended)
	return nil
}

func Example() {
	recoverPayments := func(ctx context.Context, s signals.FailureRecoverySignal) error {
		fence, err := s.Acquire(ctx)
		if err != nil {
			return err
		}
		fmt.Println("recovering", s.Appointment().Component, "of", s.Appointment().Node)
		orphans, err := fence.Orphans(fence.Context())
		if err != nil {
			return err
		}
		for _, o := range orphans {
			if err := fence.Free(fence.Context(), o); err != nil {
				return err
			}
		}
		return nil
	}

	ctx := context.Background()
	router := signals.NewRouter(signals.Options{})
	if err := router.AddRecoveryFactory("payments", signals.HandleRecovery(recoverPayments)); err != nil {
		fmt.Println(err)
		return
	}
	log := &oneJob{ref: recovery.Ref{Component: "payments", Node: "n3", Run: "c0ffee", Index: 42}, ended: make(chan struct{})}
	manager, err := recovery.New(recovery.Options{Log: log, Router: router, Node: "n1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := router.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer router.Stop()
	if err := manager.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer manager.Stop()
	<-log.ended
	// Output:
	// recovering payments of n3
	// free B12
	// released under token 7
}
