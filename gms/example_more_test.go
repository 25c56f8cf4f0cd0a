package gms_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// alone starts a group of one, for the examples; stop ends it.
func alone(ctx context.Context, cfg gms.Config) (g *gms.Group, stop func()) {
	g, err := gms.New(cfg)
	must(err)
	must(errors.Join(g.Start(ctx), g.AwaitStanding(ctx)))
	return g, func() { must(g.Stop(ctx)) }
}

func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("example: %v", err))
	}
}

// Before people work by hand on what a component of a living node keeps, they raise a fence: the component takes nothing new
// until it is lowered. It ends with its raiser's run too.
func ExampleGroup_RaiseFence() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	group, stop := alone(ctx, gms.DefaultConfig())
	defer stop()

	token, err := group.RaiseFence(ctx, "payments", "n1")
	must(err)
	fenced, changed, err := group.IsFenced(ctx, "payments", "n1")
	must(err)
	fmt.Println("fenced:", fenced)
	_, err = group.RaiseFence(ctx, "payments", "n1")
	fmt.Println("raised twice:", !errors.Is(err, gms.ErrBusy))

	must(group.LowerFence(ctx, "payments", "n1", token))
	<-changed
	fenced, _, err = group.IsFenced(ctx, "payments", "n1")
	must(err)
	fmt.Println("fenced:", fenced)
	// Output:
	// fenced: true
	// raised twice: false
	// fenced: false
}

// Bytes for a component of another member. Who gets them, and who does not, the sender is told.
func ExampleGroup_Send() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	n1, stop := alone(ctx, gms.DefaultConfig())
	defer stop()

	cfg := gms.DefaultConfig()
	cfg.Node, cfg.Seeds = "n2", []string{n1.GossipAddress()}
	n2, err := gms.New(cfg)
	must(err)
	got := make(chan string, 10)
	must(n2.Router().AddMessageFactory("payments", signals.Handle(func(_ context.Context, s signals.Signal) error {
		m := s.(*signals.Message)
		got <- m.Facts().Member.Node + ": " + string(m.Payload())
		return nil
	})))
	must(errors.Join(n2.Start(ctx), n2.AwaitStanding(ctx)))
	defer func() { must(n2.Stop(ctx)) }()

	must(n1.Sync(ctx)) // n1 sees what the group has decided before now: n2 is a member
	must(n1.Send(ctx, "payments", []byte("invoice-7 is paid"), "n2"))
	fmt.Println(<-got)
	err = n1.Send(ctx, "payments", []byte("hello"), "n9")
	fmt.Println("nobody of that name:", errors.Is(err, gms.ErrUnknownMember))
	// Output:
	// n1: invoice-7 is paid
	// nobody of that name: true
}

// A component keeps its settings in the state cache and follows them: read all, then watch from there. No change is missed,
// and none is seen twice.
func ExampleCache_Watch() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	group, stop := alone(ctx, gms.DefaultConfig())
	defer stop()
	cache := group.Cache()
	limit := gms.Key{Component: "payments", Key: "limit"}
	put := func(value string, conditions ...gms.Condition) (version uint64, err error) {
		return cache.Commit(ctx, gms.Txn{Conditions: conditions, Puts: []gms.Put{{Key: limit, Value: []byte(value)}}})
	}
	first, err := put("10")
	must(err)

	entries, position := cache.ReadAll("payments")
	fmt.Println("at first:", string(entries[0].Value))
	_, err = put("20", gms.VersionIs(limit, first))
	must(err)
	_, err = put("30", gms.VersionIs(limit, first)) // meant for what is not there any more
	fmt.Println("over somebody else's change:", errors.Is(err, gms.ErrConflict))
	_, err = cache.Commit(ctx, gms.Txn{Deletes: []gms.Key{limit}})
	must(err)
	for change, err := range cache.Watch(ctx, "payments", position) {
		must(err)
		e := change.Events[0]
		fmt.Printf("%s: %q, deleted: %v\n", e.Key.Key, e.Value, e.Deleted)
		if e.Deleted {
			break
		}
	}
	// Output:
	// at first: 10
	// over somebody else's change: true
	// limit: "20", deleted: false
	// limit: "", deleted: true
}

// What a host's metrics want is asked for at each scrape, and carries no type of any metrics library: a group registers
// nothing anywhere. A registry's collector, or this function, is given the group.
func ExampleGroup_Health() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	group, stop := alone(ctx, gms.DefaultConfig())
	defer stop()
	collect := func(gauge func(name string, value float64)) {
		h := group.Health()
		open, _ := group.Recoveries()
		gauge("alarms", float64(len(h.Alarms)))
		gauge("members", float64(len(group.View().Members)))
		gauge("recoveries open", float64(len(open)))
	}
	collect(func(name string, value float64) { fmt.Println(name, value) })
	// Output:
	// alarms 0
	// members 1
	// recoveries open 0
}
