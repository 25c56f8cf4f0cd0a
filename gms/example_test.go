package gms_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// One node that forms a group by itself claims an item, writes the result of its work under the claim's token, and learns
// that the same write is refused once the claim is over. With Seeds in the configuration the same program joins others.
func Example() {
	if err := payOnce(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// joined: n1
	// stored: paid
	// a late write is refused: true
}

func payOnce() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	group, err := gms.New(gms.DefaultConfig())
	if err != nil {
		return err
	}
	joined := make(chan string, 1)
	if err := group.Router().AddActionFactory(signals.Handle(func(_ context.Context, s signals.Signal) error {
		joined <- s.Facts().Member.Node
		return nil
	}), signals.JoinNotification); err != nil {
		return err
	}
	if err := group.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, group.Stop(ctx)) }()
	if err := group.AwaitStanding(ctx); err != nil {
		return err
	}
	fmt.Println("joined:", <-joined)

	claim, err := group.Claim(ctx, "payments", "invoice-7", 1)
	if err != nil {
		return err
	}
	_, run := group.Self()
	result := gms.Key{Component: "payments", Key: "invoice-7"}
	paid := gms.Txn{
		Conditions: []gms.Condition{gms.ClaimHeld("payments", "invoice-7", run, claim.Token)},
		Puts:       []gms.Put{{Key: result, Value: []byte("paid")}},
	}
	if _, err := group.Cache().Commit(ctx, paid); err != nil {
		return err
	}
	entry, err := group.Cache().Get(ctx, result) // linearizable; GetLocal asks this node's replica only
	if err != nil {
		return err
	}
	fmt.Println("stored:", string(entry.Value))

	if err := group.EndClaim(ctx, claim, signals.Complete); err != nil {
		return err
	}
	_, err = group.Cache().Commit(ctx, paid)
	fmt.Println("a late write is refused:", errors.Is(err, gms.ErrFenced))
	return nil
}
