package overview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Judge makes the overview.
func Judge(f Facts) api.Overview {
	o := api.Overview{
		Status: f.Status, Stale: f.View.Stale, Crew: crew(f), Fences: f.Fences, Storages: slices.Clone(f.Storages),
		Databases: []api.DatabaseState{}, Active: f.Active, Waiting: f.Waiting, Upgrade: f.Upgrade,
	}
	slices.SortFunc(o.Storages, func(a, b api.StorageState) int { return strings.Compare(a.Name, b.Name) })
	for _, d := range f.Databases {
		o.Databases = append(o.Databases, judge(d, f.Now))
	}
	slices.SortFunc(o.Databases, func(a, b api.DatabaseState) int { return strings.Compare(a.Name, b.Name) })
	o.Alarms = slices.Concat(groupAlarms(f, o.Crew), nodeAlarms(f), recoveryAlarms(f), storageAlarms(f), databaseAlarms(f), f.Others)
	slices.SortFunc(o.Alarms, func(a, b api.Alarm) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.Key(), b.Key()))
	})
	o.Alarms = slices.CompactFunc(o.Alarms, func(a, b api.Alarm) bool { return a.Key() == b.Key() })
	o.Health = health(o.Alarms)
	o.Problems = []string{}
	for _, a := range o.Alarms {
		o.Problems = append(o.Problems, a.Text)
	}
	return o
}

func rank(a api.Alarm) int {
	switch {
	case a.Kind == kindQuorum:
		return 0
	case a.Severity == api.Critical:
		return 1
	default:
		return 2
	}
}

// health is what the worst alarm says; alarms are sorted.
func health(alarms []api.Alarm) string {
	switch {
	case len(alarms) == 0:
		return api.HealthWell
	case alarms[0].Kind == kindQuorum:
		return api.HealthNoQuorum
	case alarms[0].Severity == api.Critical:
		return api.HealthAlarmed
	default:
		return api.HealthWarned
	}
}

func crew(f Facts) api.Crew {
	c := api.Crew{Members: len(f.View.Members), Voters: len(f.Voters)}
	for _, m := range f.View.Members {
		switch {
		case m.Suspected:
			c.Suspected++
		case m.Ready:
			c.Ready++
		}
		if !m.Suspected && slices.Contains(f.Voters, m.Node) {
			c.Present++
		}
	}
	c.Spare = max(0, c.Present-(c.Voters/2+1))
	return c
}

// Kinds of alarms.
const (
	kindQuorum      = "quorum"
	kindLease       = "lease"
	kindVoters      = "voters"
	kindMember      = "member"
	kindReplication = "replication"
	kindNode        = "node"
	kindWaiting     = "waiting"
	kindClock       = "clock"
	kindCertificate = "certificate"
	kindAudit       = "audit"
	kindStuck       = "stuck"
	kindRecovery    = "recovery"
	kindParked      = "parked"
	kindQuarantine  = "quarantine"
	kindStorage     = "storage"
	kindLedger      = "ledger"
	kindBackup      = "backup"
	kindFailed      = "failed"
	kindSuspect     = "suspect"
)

// groupAlarms are about the members and the log.
func groupAlarms(f Facts, c api.Crew) (list []api.Alarm) {
	add := func(kind, about string, s api.Severity, text, hint string) {
		list = append(list, api.Alarm{Kind: kind, About: about, Severity: s, Text: text, Hint: hint})
	}
	switch {
	case f.Status.Leader == "":
		add(kindQuorum, f.Status.Group, api.Critical, "no leader is known: the group has no quorum, or this node cannot reach it",
			"start the nodes that are down, and see that they reach each other; nothing is lost, work goes on with the quorum")
	case f.View.Stale:
		add(kindQuorum, f.Status.Group, api.Critical, "no majority confirms what this node knows: the group has no quorum, or this node is cut off from it",
			"start the nodes that are down, and see that they reach each other")
	}
	present := func(node string) bool {
		return slices.ContainsFunc(f.View.Members, func(m api.Member) bool { return m.Node == node })
	}
	for _, v := range f.Voters {
		if !present(v) && len(f.View.Members) > 0 {
			text, hint := "node "+v+" votes and is not here", "start it again; one that is gone for good: fencepost node forget "+v
			if why := f.Distrusted[v]; why != "" {
				text, hint = text+": "+why, "a new certificate is taken up without a restart"
			}
			add(kindMember, v, api.Warning, text, hint)
		}
	}
	for _, m := range f.View.Members {
		if m.Suspected {
			add(kindMember, m.Node, api.Warning, "node "+m.Node+" is suspected: it answers late or not at all", "look at its load and its network")
		}
	}
	for _, node := range slices.Sorted(maps.Keys(f.Distrusted)) {
		list = append(list, api.Alarm{Kind: kindCertificate, About: node + " at " + f.Status.Node, Severity: api.Critical, Local: true,
			Text: "node " + node + " is refused: " + f.Distrusted[node], Hint: "a new certificate is taken up without a restart"})
	}
	switch {
	case c.Voters == 2:
		add(kindVoters, f.Status.Group, api.Warning, "the group has two members, and does not survive the loss of one: a third, or a witness, helps", "a node with role: witness only votes and needs no disk to speak of")
	case c.Voters > 2 && c.Present > 0 && c.Spare == 0:
		add(kindVoters, f.Status.Group, api.Warning, fmt.Sprintf("%d of %d voters are here: the group does not survive the loss of another", c.Present, c.Voters), "start the ones that are down")
	}
	for _, text := range f.GroupAlarms {
		about, _, _ := strings.Cut(text, ": ")
		if about == kindRecovery { // the log says so, on every node alike
			add(kindRecovery, f.Status.Group, api.Warning, text, "fencepost recoveries")
			continue
		}
		list = append(list, api.Alarm{Kind: kindReplication, About: about + " by " + f.Status.Node, Severity: api.Warning, Text: text, Local: true})
	}
	return list
}

// nodeAlarms are about the node that answers.
func nodeAlarms(f Facts) (list []api.Alarm) {
	add := func(kind string, s api.Severity, text, hint string) {
		list = append(list, api.Alarm{Kind: kind, About: f.Status.Node, Severity: s, Text: text, Hint: hint, Local: true})
	}
	if f.NodeProblem != nil {
		add(kindNode, api.Critical, f.NodeProblem.Error(), hintOf(f.NodeProblem))
	}
	if f.Waits != nil {
		add(kindWaiting, api.Critical, f.Waits.Error(), hintOf(f.Waits))
	}
	if f.Status.Lease == "expired" && f.Status.Run != "" {
		add(kindLease, api.Critical, "node "+f.Status.Node+" may not act: its lease has run out", "see that it reaches the other members")
	}
	if f.ClockOff != "" {
		add(kindClock, api.Warning, f.ClockOff, "timedatectl set-ntp true, or an NTP service of your own")
	}
	if f.Certificate != "" {
		severity := api.Warning
		if f.Uncertified {
			severity = api.Critical
		}
		add(kindCertificate, severity, f.Certificate, "a new certificate is taken up without a restart")
	}
	if f.Uncopied != nil {
		add(kindAudit, api.Warning, f.Uncopied.Error(), "the group has the records; mend the disk or move the copy away, and restart the node: see audit.file")
	}
	for _, c := range f.Stuck {
		list = append(list, api.Alarm{Kind: kindStuck, About: c.Component + " " + c.Item, Severity: api.Critical, Local: true,
			Text: "the work on item " + c.Item + " of " + c.Component + " was ended by force on node " + f.Status.Node + ", and is not proven to have stopped: it keeps its claim",
			Hint: "stop what it started by hand, or restart the node; the claim is given back as soon as the work has ended"})
	}
	return list
}

// recoveryAlarms are about recoveries and claims that nobody goes on with.
func recoveryAlarms(f Facts) (list []api.Alarm) {
	for _, x := range f.Fences {
		if x.State != api.FenceParked {
			continue
		}
		text := "the recovery of " + x.Component + " of " + x.Node + " is parked: every member has failed at it"
		if x.Problem != "" {
			text += ": " + x.Problem
		}
		list = append(list, api.Alarm{Kind: kindParked, About: x.Component + " of " + x.Node + "/" + shortRun(x.Run), Severity: api.Critical, Text: text,
			Hint: "fencepost recoveries show tells what was tried; mend the cause, then: fencepost recoveries retry", Cause: x.Problem, Since: x.Since})
	}
	for _, c := range f.Claims {
		if c.State != "quarantined" {
			continue
		}
		list = append(list, api.Alarm{Kind: kindQuarantine, About: c.Component + " " + c.Item, Severity: api.Critical,
			Text: "item " + c.Item + " of " + c.Component + " is quarantined, by an operator or because it has cost too many nodes their lives",
			Hint: "the logs of the nodes that died say why; then: fencepost claim free " + c.Component + " " + c.Item + " --token " + strconv.FormatUint(c.Token, 10)})
	}
	for _, x := range f.Aside {
		a := api.Alarm{Kind: kindQuarantine, About: x.Component + " " + x.Item, Severity: api.Critical, Cause: x.Why,
			Text: fmt.Sprintf("item %s of %s is quarantined after %d failures in a row%s", x.Item, x.Component, x.Failures, problem(x.Why)),
			Hint: "fencepost item query " + x.Component + " --explain " + x.Item + " shows them; when the cause is mended: fencepost event restart " + x.Item + " " + x.Component}
		if !x.Since.IsZero() {
			a.Since = &x.Since
		}
		list = append(list, a)
	}
	return list
}

func storageAlarms(f Facts) (list []api.Alarm) {
	for _, s := range f.Storages {
		severity := api.Critical
		if s.State == "away" {
			severity = api.Warning
		}
		if s.State == "away" || s.State == "strange" {
			list = append(list, api.Alarm{Kind: kindStorage, About: s.Name + " on " + f.Status.Node, Severity: severity, Local: true,
				Text: "storage " + s.Name + ": " + s.Problem, Hint: cmp.Or(s.Hint, "fencepost storage check "+s.Name), Cause: s.Problem, Since: s.Since})
		}
	}
	if f.Ledger != nil {
		list = append(list, api.Alarm{Kind: kindLedger, About: f.Status.Group, Severity: api.Critical, Text: "the ledger cannot be used: " + f.Ledger.Error(),
			Hint: cmp.Or(hintOf(f.Ledger), "see that its server runs and that a majority of the voters is here"), Cause: f.Ledger.Error(), Local: true})
	}
	return list
}

func shortRun(run string) string { return run[:min(8, len(run))] }

// hintOf is the remedy that an error carries.
func hintOf(err error) string {
	for ; err != nil; err = unwrap(err) {
		if h, ok := err.(interface{ Hint() string }); ok {
			return h.Hint()
		}
	}
	return ""
}

func unwrap(err error) error {
	if u, ok := err.(interface{ Unwrap() error }); ok {
		return u.Unwrap()
	}
	return nil
}
