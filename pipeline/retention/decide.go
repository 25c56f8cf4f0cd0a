package retention

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Backup is what matters here of one backup in one storage.
type Backup struct {
	ID       string
	AsOf     time.Time // of its content, by the database's clock
	Good     bool      // complete, and nothing found wrong with it
	Partial  bool      // it holds chosen parts of the database: made on request, it takes no place of a whole one
	Verified bool      // read back or restored, and found whole
	Suspect  bool      // complete but odd: half the usual size, tables vanished, …
	Accepted bool      // an operator has looked at a suspect one and wants it
	Pinned   bool      // an operator wants it kept
	Locked   time.Time // until then its storage forbids its removal; zero: it does not
	InUse    bool      // being restored, verified or copied
}

func (b Backup) good() bool { return b.Good && !b.Partial && (!b.Suspect || b.Accepted) }

func (p Policy) counts(b Backup) bool { return b.good() && (b.Verified || p.Unverified) }

// Input is what there is.
type Input struct {
	Backups   []Backup  // all of one database in one storage, in any order
	Listing   error     // of reading Backups; nil = complete
	LastRun   error     // of the backup run on whose back this is decided; nil = it was good, or there was none
	Clocks    error     // whose clock is off; nil = they agree
	Now       time.Time // only to refuse times in the future
	Confirmed bool      // an operator agrees to more than MaxShare
}

// Action is what becomes of a backup.
type Action string

// Actions.
const (
	Keep   Action = "keep"
	Remove Action = "remove"
	Held   Action = "held" // would be removed, but the plan is stopped
)

// Decision is what becomes of one backup, and why.
type Decision struct {
	ID     string
	Action Action
	Reason string   // one sentence's worth
	Rules  []string // that hold it: last, hourly, daily, weekly, monthly, yearly, max age, min keep
}

// Stop is why nothing is removed.
type Stop string

// Reasons to stop; Plan.Details has the words for people.
const (
	BadPolicy     Stop = "policy out of bounds"
	ListingFailed Stop = "listing failed"
	RunFailed     Stop = "last run failed"
	WrongClock    Stop = "wrong clock"
	FutureTime    Stop = "time in the future"
	SuspectBackup Stop = "suspect backup"
	TooMany       Stop = "too many at once" // alone of all, Input.Confirmed lifts it
)

// FutureTolerance is how far a backup's time may be ahead of Input.Now.
const FutureTolerance = 5 * time.Minute

// Plan is the whole answer.
type Plan struct {
	Decisions []Decision // newest first, one per backup
	Stops     []Stop     // empty: Remove may be carried out
	Details   []string   // one per stop
}

// Remove returns the ids that may be removed, oldest first; none when the plan is stopped.
func (p Plan) Remove() []string {
	var out []string
	for _, d := range slices.Backward(p.Decisions) {
		if d.Action == Remove {
			out = append(out, d.ID)
		}
	}
	return out
}

func (p *Plan) stop(why Stop, format string, args ...any) {
	p.Stops, p.Details = append(p.Stops, why), append(p.Details, fmt.Sprintf(format, args...))
}

// Decide says what becomes of each backup under a policy.
func Decide(p Policy, in Input) Plan {
	list := slices.Clone(in.Backups)
	slices.SortFunc(list, func(a, b Backup) int {
		return cmp.Or(b.AsOf.Compare(a.AsOf), strings.Compare(b.ID, a.ID))
	})
	var plan Plan
	plan.precheck(p, in, list)
	if !slices.Contains(plan.Stops, BadPolicy) {
		plan.Decisions = p.judge(list)
	} else {
		for _, b := range list {
			plan.Decisions = append(plan.Decisions, Decision{ID: b.ID, Action: Keep, Reason: "the policy is out of bounds"})
		}
	}
	going := len(plan.Remove())
	if allowed := p.allowed(len(list)); going > allowed && !in.Confirmed {
		plan.stop(TooMany, "%d of %d backups would go at once, %d may without confirmation", going, len(list), allowed)
	}
	if len(plan.Stops) > 0 {
		for i := range plan.Decisions {
			if plan.Decisions[i].Action == Remove {
				plan.Decisions[i].Action = Held
			}
		}
	}
	return plan
}

// precheck finds what stops everything before any backup is looked at. The list is sorted.
func (p *Plan) precheck(policy Policy, in Input, list []Backup) {
	if err := policy.Check(); err != nil {
		p.stop(BadPolicy, "%v", err)
	}
	if in.Listing != nil {
		p.stop(ListingFailed, "the backups could not be listed: %v", in.Listing)
	}
	if in.LastRun != nil {
		p.stop(RunFailed, "the last run failed: %v", in.LastRun)
	}
	if in.Clocks != nil {
		p.stop(WrongClock, "%v", in.Clocks)
	}
	seen := make(map[string]bool, len(list))
	for _, b := range list {
		switch {
		case b.ID == "" || seen[b.ID]:
			p.stop(ListingFailed, "the listing has the backup %q twice or without a name", b.ID)
		case b.AsOf.IsZero():
			p.stop(ListingFailed, "backup %s has no time", b.ID)
		case b.AsOf.After(in.Now.Add(FutureTolerance)):
			p.stop(FutureTime, "backup %s is of %s, which is in the future", b.ID, b.AsOf.Format(time.RFC3339))
		}
		if b.Good && b.Suspect && !b.Accepted && !b.Partial {
			p.stop(SuspectBackup, "backup %s is suspect and nobody has accepted it", b.ID)
		}
		seen[b.ID] = true
	}
}

// judge decides about each backup of a sorted list, stops aside.
func (p Policy) judge(list []Backup) []Decision {
	var counting, good []Backup
	for _, b := range list {
		if p.counts(b) {
			counting = append(counting, b)
		}
		if b.good() {
			good = append(good, b)
		}
	}
	j := judge{policy: p, counting: p.holds(counting), good: p.holds(good), floor: make(map[string]bool)}
	if len(counting) > 0 {
		j.newest = counting[0]
		j.floor[good[0].ID] = true
	}
	for _, b := range counting[:min(len(counting), p.minKeep())] {
		j.floor[b.ID] = true
	}
	out := make([]Decision, len(list))
	for i, b := range list {
		out[i] = j.decide(b)
	}
	return out
}

// judge knows what the rules hold.
type judge struct {
	policy   Policy
	counting map[string][]string // id → rules, of the backups that count
	good     map[string][]string // of all good ones
	floor    map[string]bool     // stays whatever the rules say
	newest   Backup              // that counts; zero when none does
}

func (j judge) decide(b Backup) Decision {
	d := j.byRules(b)
	if d.Action == Keep {
		return d
	}
	switch {
	case b.Pinned:
		d.Action, d.Reason = Keep, "pinned; else: "+d.Reason
	case !b.Locked.IsZero():
		d.Action, d.Reason = Keep, "locked until "+b.Locked.UTC().Format(time.RFC3339)+"; else: "+d.Reason
	case b.InUse:
		d.Action, d.Reason = Keep, "in use; else: "+d.Reason
	}
	return d
}

// byRules decides without looking at pins, locks and use.
func (j judge) byRules(b Backup) Decision {
	keep := func(reason string, rules ...string) Decision { return Decision{b.ID, Keep, reason, rules} }
	remove := func(reason string) Decision { return Decision{ID: b.ID, Action: Remove, Reason: reason} }
	switch {
	case b.Partial:
		return keep("it holds chosen parts only: it stays until somebody deletes it")
	case b.Good && b.Suspect && !b.Accepted:
		return keep("suspect: it stays until somebody accepts or deletes it")
	case j.newest.ID == "":
		return keep("no backup counts yet, so none goes")
	case !j.policy.hasRules() && j.policy.MaxAge == 0:
		return keep("the policy has no rules")
	case !b.Good && b.AsOf.Before(j.newest.AsOf):
		return remove("not good, and a newer one is")
	case !b.Good:
		return keep("not good, but no newer one is")
	}
	return j.byAgeAndPlace(b, keep, remove)
}

func (j judge) byAgeAndPlace(b Backup, keep func(string, ...string) Decision, remove func(string) Decision) Decision {
	rules := j.counting[b.ID]
	for _, r := range j.good[b.ID] {
		if !slices.Contains(rules, r) {
			rules = append(rules, r)
		}
	}
	age := j.newest.AsOf.Sub(b.AsOf)
	young := j.policy.MaxAge == 0 || age <= j.policy.MaxAge
	if young && !j.policy.hasRules() {
		rules = []string{"max age"}
	}
	switch {
	case young && len(rules) > 0:
		return keep("held by "+strings.Join(rules, ", "), rules...)
	case j.floor[b.ID]:
		return keep("one of the last good ones", "min keep")
	case !young:
		return remove(fmt.Sprintf("%s older than the newest good one, max age is %s", age, j.policy.MaxAge))
	default:
		return remove("no rule holds it")
	}
}
