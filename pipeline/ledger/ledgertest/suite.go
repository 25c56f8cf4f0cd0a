package ledgertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// Factory makes an empty ledger and the group that it belongs to. It registers clean-ups with t.
type Factory func(t *testing.T) (ledger.Ledger, Group)

// oneCase is one case of the suite.
type oneCase struct {
	name string
	rule int // of PROTOCOL.md, which it is the test of; 0: of the contract only
	test func(*bench)
}

var suite = []oneCase{
	{"PlanOnce", 0, planOnce},
	{"ListsNewestFirst", 0, listsNewestFirst},
	{"WrongClaimWritesNothing", 0, wrongClaim},
	{"FinalIsNeverLeft", 0, finalStays},
	{"CompletedOnce", 0, completedOnce},
	{"BackupStates", 0, backupStates},
	{"ChangeIsAllOrNothing", 0, allOrNothing},
	{"CancelOrFinish", 0, cancelOrFinish},
	{"CancelSurvivesWrites", 0, cancelSurvives},
	{"SixteenWriters", 0, sixteenWriters},
	{"WatchHints", 0, watchHints},
	{"OnlyOneInFlight", 0, onlyOneInFlight},
	{"FlightsRace", 0, flightsRace},
	{"DumpsOfAServer", 0, dumpsOfAServer},
	{"EditsKeepAndAreKept", 0, editsKeepAndAreKept},
	{"Pages", 0, pages},
	{"ErrorsComeUntilHandled", 0, errorsComeUntilHandled},
	{"Imports", 0, imports},
	{"LogsAreKept", 0, logsAreKept},
	{"BegunIsTheLedgersWord", 0, begunIsTheLedgersWord},

	{"ClosedRunWritesNothing", 23, closedRun},
	{"LogsOfTheShutOut", 23, logsOfTheShutOut},
	{"EarlierRecovererWritesNothing", 23, earlierRecoverer},
	{"ShutOutAmidWrites", 24, shutOutAmidWrites},
	{"TakesRace", 25, takesRace},
	{"OldTokenWritesNothing", 25, oldToken},
	{"LowerTokenOfTheRunWritesNothing", 25, lowerTokenOfTheRun},
	{"WhatIsLeftIsKnown", 26, leftIsKnown},
	{"TakeRaisesTokenAndAttempt", 27, takeRaises},
	{"PlannedAgainKeepsToken", 27, plannedAgain},
	{"GoneIsKept", 28, goneIsKept},
	{"DeletingStays", 29, deletingStays},
	{"DeletesAreChecked", 30, deletesAreChecked},
	{"TwoDeletesRace", 30, twoDeletesRace},
}

// Run tests the contract of package ledger against what factory makes, but for the rules that Rule tests.
func Run(t *testing.T, factory Factory) { run(t, factory, 0) }

// Rule tests one rule of PROTOCOL.md, 23 to 30, against what factory makes.
func Rule(t *testing.T, n int, factory Factory) {
	t.Helper()
	if n == 0 || run(t, factory, n) == 0 {
		t.Fatalf("the suite has no case of rule %d", n)
	}
}

func run(t *testing.T, factory Factory, rule int) (ran int) {
	t.Helper()
	for _, c := range suite {
		if c.rule != rule {
			continue
		}
		ran++
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			led, group := factory(t)
			group.OpenRun("aa")
			group.OpenRun("bb")
			group.OpenRun("cc")
			c.test(&bench{T: t, ctx: ctx, led: led, group: group})
		})
	}
	return ran
}

// bench is one test with its ledger.
type bench struct {
	*testing.T
	ctx   context.Context
	led   ledger.Ledger
	group Group
}

const component = "backup"

func (b *bench) must(err error, what string) {
	b.Helper()
	if err != nil {
		b.Fatalf("%s: %v", what, err)
	}
}

func (b *bench) want(err, sentinel error, what string) {
	b.Helper()
	if !errors.Is(err, sentinel) {
		b.Fatalf("%s: got %v, want %v", what, err, sentinel)
	}
}

// plan inserts a create task whose backup has id "b"+id.
func (b *bench) plan(id string) ledger.Task {
	b.Helper()
	t := ledger.Task{
		ID: id, Type: ledger.Create, RunType: ledger.User, MaxAttempts: 3, OnFailure: "rerun",
		Database: "shop", Backup: "b" + id, Storages: []string{"one", "two"}, Require: "all",
	}
	b.must(b.led.Plan(b.ctx, t), "plan "+id)
	return b.task(id)
}

func (b *bench) task(id string) ledger.Task {
	b.Helper()
	t, err := b.led.Task(b.ctx, id)
	b.must(err, "read "+id)
	return t
}

// claim gives run the claim on item.
func (b *bench) claim(item, run string) ledger.Guard {
	b.Helper()
	token, err := b.group.Claim(component, item, run)
	b.must(err, "claim "+item)
	return ledger.Guard{Run: run, Component: component, Item: item, Token: token}
}

// take claims and takes a task for run.
func (b *bench) take(id, run string) (ledger.Guard, ledger.Task) {
	b.Helper()
	g := b.claim(id, run)
	_, err := b.led.Take(b.ctx, g, id, "node-"+run)
	b.must(err, "take "+id)
	return g, b.task(id)
}

// recoverer closes dead and lets heir raise the fence, shut out and adopt the claim on id.
func (b *bench) recoverer(id, dead, heir string) ledger.Guard {
	b.Helper()
	b.group.CloseRun(dead)
	f := ledger.Fence{Component: component, Node: "node-" + dead, Run: dead}
	f.Token = b.group.RaiseFence(component, f.Node, dead, heir)
	b.must(b.led.ShutOut(b.ctx, f), "shut out "+dead)
	token, err := b.group.Adopt(component, id, heir)
	b.must(err, "adopt "+id)
	return ledger.Guard{Run: heir, Component: component, Item: id, Token: token, Fence: &f}
}

// write sets the task's state, and its backup's when given.
func (b *bench) write(g ledger.Guard, t ledger.Task, s ledger.State, backup ...ledger.BackupState) error {
	t.State = s
	c := ledger.Change{Task: t}
	for _, bs := range backup {
		c.Backup = &ledger.Backup{ID: t.Backup, Database: t.Database, State: bs, Token: g.Token}
	}
	return b.led.Write(b.ctx, g, c)
}
