package components_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/cmd/components"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/recovery"
)

// A host app's own component on its group: it finds its own work by what has happened to items, claims it so that no other
// node does it too, and keeps what it did with the item. Here batches that were scanned are to be checked.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	group := must(gms.New(gms.DefaultConfig()))
	manager := must(recovery.ForGroup(group, recovery.Options{}))
	host := must(components.NewHost(components.Config{Group: group, Manager: manager}))
	checked := make(chan string)
	check(host.AddComponent(component.Config{
		Component: "check", Peek: true,
		Trigger: component.Trigger{Past: []string{"scan"}, Future: []string{"check"}},
		Worker: component.Func(func(_ context.Context, j component.Job) (component.Report, error) {
			checked <- j.Item.ID
			return component.Report{}, nil
		}),
	}, components.Free))
	check(errors.Join(group.Start(ctx), manager.Start(ctx), host.Start(ctx)))

	items := host.Items()
	for _, id := range []string{"batch-1", "batch-2"} {
		must(items.Put(ctx, component.Item{Type: "batch", ID: id}, false))
	}
	check(items.Append(ctx, "batch-2", component.Event{Type: "scan", Start: time.Now(), Success: true}))
	fmt.Println("checked", <-checked)

	check(host.Stop(ctx))
	manager.Stop()
	check(group.Stop(ctx, host.Components()...))
	// Output:
	// checked batch-2
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		panic(fmt.Sprintf("example: %v", err))
	}
}
