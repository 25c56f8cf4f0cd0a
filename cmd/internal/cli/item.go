package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

type (
	itemsOutput     []api.Item
	itemOutput      api.Item
	forgottenOutput api.Forgotten
)

func (r *root) itemCommand() *cobra.Command {
	return group("item", "Look at the items of components, and make them", r.itemQueryCommand(), r.itemPutCommand())
}

func (r *root) itemQueryCommand() *cobra.Command {
	var explain string
	var all bool
	var q api.ItemQuery
	cmd := &cobra.Command{
		Use:   "query [COMPONENT]",
		Short: "List the items that a component, or a trigger, wants now, or explain one",
		Long: "List the items that a component would work on now. --past and the others are a trigger of your own, instead of the\n" +
			"component's; with a component they are still looked at with what it knows of failures and waiting. --explain ID shows\n" +
			"one item with its events, and each reason why it is not wanted.",
		Args: arguments(0, 1),
	}
	for _, f := range []struct {
		into        *[]string
		name, usage string
	}{
		{&q.Past, "past", "event types whose newest succeeded"},
		{&q.PastFailed, "past-failed", "event types whose newest failed"},
		{&q.Future, "future", "event types of which there is none at all"},
		{&q.Old, "old", "event types of which there is none since the item's last change"},
		{&q.Types, "type", "types of items"},
	} {
		cmd.Flags().StringSliceVar(f.into, f.name, nil, f.usage)
	}
	cmd.Flags().StringVar(&explain, "explain", "", "show this item, and why it is not wanted")
	cmd.Flags().BoolVar(&all, "all", false, "also those that are not wanted")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			q.Component = args[0]
		}
		nobody := q.Component == "" && !q.Own()
		if nobody && explain != "" {
			return &api.Error{Code: api.CodeUsage, Message: "--explain: to whom? name a component, or a trigger with --past and the others", Hint: "fencepost component ls lists the components"}
		}
		c := r.client()
		defer c.Close()
		if explain != "" {
			it, err := api.Get[api.Item](cmd.Context(), c, api.ItemPath(q, explain))
			if err != nil {
				return err
			}
			return r.print(itemOutput(it))
		}
		list, err := api.Get[[]api.Item](cmd.Context(), c, api.ItemsPath(q))
		if err != nil {
			return err
		}
		out := itemsOutput{}
		for _, it := range list {
			if all || nobody || it.Wanted {
				out = append(out, it)
			}
		}
		return r.print(out)
	}
	return cmd
}

func (r *root) itemPutCommand() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:   "put TYPE ID",
		Short: "Make an item, or say that it has changed",
		Args:  arguments(2, 2),
	}
	cmd.Flags().StringVar(&data, "data", "", "JSON for the components that work on it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if data != "" && !json.Valid([]byte(data)) {
			return &api.Error{Code: api.CodeUsage, Message: "--data: want JSON"}
		}
		c := r.client()
		defer c.Close()
		it, err := c.PutItem(cmd.Context(), api.PutItem{Type: args[0], ID: args[1], Data: json.RawMessage(data)})
		if err != nil {
			return err
		}
		return r.print(itemOutput(it))
	}
	return cmd
}

func (r *root) eventCommand() *cobra.Command {
	ls := live(r, &cobra.Command{Use: "ls ITEM", Short: "List the events of an item", Args: arguments(1, 1)},
		func(args []string) string { return api.ItemPath(api.ItemQuery{}, args[0]) }, func(it api.Item) output { return itemOutput(it) })
	return group("event", "Look at the events of items, and change them by hand", ls, r.eventAppendCommand(),
		r.forgetCommand("rm ITEM TYPE", "Take the events of a type away from an item"),
		r.forgetCommand("restart ITEM COMPONENT", "Have a component work on an item anew: its events go, and its quarantine"))
}

func (r *root) eventAppendCommand() *cobra.Command {
	var want api.AppendEvent
	cmd := &cobra.Command{Use: "append ITEM TYPE", Short: "Add an event to an item by hand, of now", Args: arguments(2, 2)}
	cmd.Flags().BoolVar(&want.Failed, "failed", false, "it failed; without, it succeeded")
	cmd.Flags().StringVar(&want.Details, "details", "", "one sentence")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		want.Type = args[1]
		c := r.client()
		defer c.Close()
		it, err := c.AppendEvent(cmd.Context(), args[0], want)
		if err != nil {
			return err
		}
		return r.print(itemOutput(it))
	}
	return cmd
}

func (r *root) forgetCommand(use, short string) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: arguments(2, 2)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := r.client()
		defer c.Close()
		n, err := c.ForgetEvents(cmd.Context(), args[0], api.ForgetEvents{Type: args[1]})
		if err != nil {
			return err
		}
		return r.print(forgottenOutput(n))
	}
	return cmd
}

func (f forgottenOutput) text(w io.Writer, _ time.Time) {
	events := "events"
	if f.Events == 1 {
		events = "event"
	}
	fmt.Fprintf(w, "%d %s taken away\n", f.Events, events)
}

func (its itemsOutput) text(w io.Writer, now time.Time) {
	t := table{heading: []string{"ITEM", "TYPE", "CHANGED", "FAILURES", "WANTED", "WHY NOT"}, none: "no items"}
	for _, x := range its {
		t.rows = append(t.rows, []string{x.ID, x.Type, ago(&x.ChangedAt, now), number(x.Failures), yes(x.Wanted), strings.Join(x.Why, "; ")})
	}
	t.write(w)
}

func (it itemOutput) text(w io.Writer, now time.Time) {
	x := api.Item(it)
	var f facts
	f.add("item", x.ID)
	f.add("type", x.Type)
	f.add("changed", ago(&x.ChangedAt, now))
	f.add("data", string(x.Data))
	f.add("failures", number(x.Failures))
	f.add("quarantined", yes(x.Quarantined))
	f.add("wanted", yes(x.Wanted))
	for _, why := range x.Why {
		f.add("not wanted", why)
	}
	f.write(w)
	t := table{heading: []string{"EVENT", "OUTCOME", "WHEN", "BY", "DETAILS"}, none: "no events"}
	for _, e := range x.Events {
		outcome := "failed"
		if e.Success {
			outcome = "succeeded"
		}
		t.rows = append(t.rows, []string{e.Type, outcome, ago(&e.Start, now), e.Agent, e.Details})
	}
	t.write(w)
}
