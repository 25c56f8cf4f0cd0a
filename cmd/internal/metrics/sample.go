package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Sample is the state of a node at one moment.
type Sample struct {
	Now        time.Time // the group's time
	Overview   api.Overview
	Members    []api.Member
	Components []api.Component
	Claims     []api.Claim
	Tasks      map[TaskKey]int // that have not ended
	Raft       Raft
	Usage      api.Usage
	ClockAhead time.Duration // of the node's clock before the group's

	GossipWaiting, GossipScore int
}

// TaskKey is a kind of tasks in one state.
type TaskKey struct{ Type, State string }

// Raft is the node's part in the log.
type Raft struct {
	Leads                                 bool
	Term, Last, Commit, Applied, Snapshot uint64
	Contact                               time.Duration // since a follower heard of the leader; 0 for the leader
	Followers                             []Follower    // as the leader knows them
}

// Follower is one of the leader's followers.
type Follower struct {
	Node   string
	Behind uint64 // entries
}

// descriptions are of what is read at each scrape.
type descriptions map[string]*prometheus.Desc

func (d descriptions) add(name, help string, labels ...string) {
	d[name] = prometheus.NewDesc("fencepost_"+name, help, labels, nil)
}

func describe() descriptions {
	d := descriptions{}
	d.add("info", "1; which node of which group this is, and of which version.", "node", "group", "version")
	d.add("ready", "1 when the node is ready for work.")
	d.add("lease", "1 for the state of the node's lease: held, suspect, expired.", "state")
	d.add("quorum", "1 when a leader is known and a majority confirms the node's view.")
	d.add("leads", "1 when the node leads the group.")
	d.add("view_version", "Version of the last view that the node has seen.")
	d.add("members", "Members of the view, by state: joined, ready, suspected.", "state")
	d.add("voters", "Voters of the log, present or not.")
	d.add("voters_present", "Voters that are members and not suspected.")
	d.add("voters_spare", "How many more of the present voters may be lost.")
	d.add("fences", "Open recoveries and maintenance fences, by state.", "state")
	d.add("claims", "Claims of the group, by component and state: held, orphan, adopted, quarantined.", "component", "state")
	d.add("alarms", "What needs a person, by kind and severity.", "kind", "severity")
	d.add("raft_term", "Term of the log.")
	d.add("raft_last_index", "End of the node's log.")
	d.add("raft_commit_index", "Last entry that is known to be committed.")
	d.add("raft_applied_index", "Last entry that the node has applied.")
	d.add("raft_snapshot_index", "Last entry of the node's newest snapshot.")
	d.add("raft_leader_contact_seconds", "Since the node heard of the leader; 0 for the leader.")
	d.add("raft_follower_behind_entries", "Entries that a follower does not hold yet, as the leader knows.", "follower")
	d.add("gossip_waiting", "Changes of gossip that nobody has taken yet.")
	d.add("gossip_score", "0 when the node answers and is answered in time; more when it is slow itself.")
	d.add("tasks", "Tasks that have not ended, by type and state.", "type", "state")
	d.add("component_items_total", "Items of a component on this node, by what became of them: done, failed, stale, lost, not_stored, unpreserved.", "component", "result")
	d.add("component_paused", "1 for a component that claims nothing new.", "component")
	d.add("backup_last_good_timestamp_seconds", "Time of the snapshot of a database's newest good backup.", "database")
	d.add("backup_age_seconds", "Age of that snapshot, by the group's time.", "database")
	d.add("backup_rpo_seconds", "How old it may be; 0: nobody expects one.", "database")
	d.add("backup_overdue", "1 when it is older, or there is none in time.", "database")
	d.add("backup_failed", "1 when the newest ended attempt at a backup made none.", "database")
	d.add("backup_size_bytes", "Size of one copy of the newest good backup.", "database")
	d.add("certificate_expiry_timestamp_seconds", "When the certificate of the node expires; none without certificates.")
	d.add("clock_offset_seconds", "How far the node's clock is ahead of the group's; negative: behind.")
	d.add("storage_used_bytes", "What lies in a storage, as far as the ledger knows.", "storage")
	d.add("storage_free_bytes", "What is left in a storage that can tell.", "storage")
	d.add("storage_growth_bytes", "What came into a storage less what went, a day, over the last week; 0 while too little is known.", "storage")
	d.add("database_used_bytes", "What lies in all storages of a database.", "database")
	d.add("storage_up", "1 when the storage answered at the last look and is the one that the group knows.", "storage")
	return d
}

// collector reads a sample for each scrape.
type collector struct{ sample func(context.Context) Sample }

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range describe() {
		out <- d
	}
}

// scrapeWithin bounds one scrape.
const scrapeWithin = 15 * time.Second

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeWithin)
	defer cancel()
	s := c.sample(ctx)
	w := writer{out: out, all: describe()}
	w.group(s)
	w.raft(s)
	w.work(s)
	w.databases(s)
}

type writer struct {
	out chan<- prometheus.Metric
	all descriptions
}

func (w writer) gauge(name string, value float64, labels ...string) {
	w.out <- prometheus.MustNewConstMetric(w.all[name], prometheus.GaugeValue, value, labels...)
}

func (w writer) flag(name string, on bool, labels ...string) {
	value := 0.0
	if on {
		value = 1
	}
	w.gauge(name, value, labels...)
}

func (w writer) group(s Sample) {
	o := s.Overview
	w.gauge("info", 1, o.Node, o.Group, o.Version)
	w.flag("ready", o.Ready)
	for _, state := range []string{"held", "suspect", "expired"} {
		w.flag("lease", o.Lease == state, state)
	}
	w.flag("quorum", o.Leader != "" && !o.Stale)
	w.flag("leads", s.Raft.Leads)
	w.gauge("clock_offset_seconds", s.ClockAhead.Seconds())
	if until := o.CertificateUntil; until != nil {
		w.gauge("certificate_expiry_timestamp_seconds", float64(until.Unix()))
	}
	w.gauge("view_version", float64(o.View))
	states := map[string]int{"joined": 0, "ready": 0, "suspected": 0}
	for _, m := range s.Members {
		states[m.State]++
	}
	for state, n := range states {
		w.gauge("members", float64(n), state)
	}
	w.gauge("voters", float64(o.Crew.Voters))
	w.gauge("voters_present", float64(o.Crew.Present))
	w.gauge("voters_spare", float64(o.Crew.Spare))
	fences := map[string]int{
		api.FenceQueued: 0, api.FenceWaiting: 0, api.FenceAppointed: 0, api.FenceRaised: 0, api.FenceParked: 0, api.FenceMaintenance: 0,
	}
	for _, f := range o.Fences {
		fences[f.State]++
	}
	for state, n := range fences {
		w.gauge("fences", float64(n), state)
	}
	alarms := map[[2]string]int{}
	for _, a := range o.Alarms {
		alarms[[2]string{a.Kind, string(a.Severity)}]++
	}
	for k, n := range alarms {
		w.gauge("alarms", float64(n), k[0], k[1])
	}
}

func (w writer) raft(s Sample) {
	r := s.Raft
	w.gauge("raft_term", float64(r.Term))
	w.gauge("raft_last_index", float64(r.Last))
	w.gauge("raft_commit_index", float64(r.Commit))
	w.gauge("raft_applied_index", float64(r.Applied))
	w.gauge("raft_snapshot_index", float64(r.Snapshot))
	w.gauge("raft_leader_contact_seconds", r.Contact.Seconds())
	for _, f := range r.Followers {
		w.gauge("raft_follower_behind_entries", float64(f.Behind), f.Node)
	}
	w.gauge("gossip_waiting", float64(s.GossipWaiting))
	w.gauge("gossip_score", float64(s.GossipScore))
}

func (w writer) work(s Sample) {
	claims := map[[2]string]int{}
	for _, c := range s.Claims {
		claims[[2]string{c.Component, c.State}]++
	}
	for k, n := range claims {
		w.gauge("claims", float64(n), k[0], k[1])
	}
	for k, n := range s.Tasks {
		w.gauge("tasks", float64(n), k.Type, k.State)
	}
	for _, c := range s.Components {
		w.flag("component_paused", c.Paused, c.Name)
		for result, n := range map[string]int{
			"done": c.Done, "failed": c.Failed, "stale": c.Stale, "lost": c.Lost, "not_stored": c.NotStored, "unpreserved": c.Unpreserved,
		} {
			w.out <- prometheus.MustNewConstMetric(w.all["component_items_total"], prometheus.CounterValue, float64(n), c.Name, result)
		}
	}
}

func (w writer) databases(s Sample) {
	for _, d := range s.Overview.Databases {
		w.gauge("backup_rpo_seconds", float64(d.RPOMS)/1000, d.Name)
		w.flag("backup_overdue", d.State == api.BackupsOverdue, d.Name)
		w.flag("backup_failed", d.Failed != "", d.Name)
		if d.LastGood != nil {
			w.gauge("backup_last_good_timestamp_seconds", float64(d.LastGood.UnixMilli())/1000, d.Name)
			w.gauge("backup_age_seconds", s.Now.Sub(*d.LastGood).Seconds(), d.Name)
			w.gauge("backup_size_bytes", float64(d.Bytes), d.Name)
		}
	}
	for _, x := range s.Usage.Storages {
		w.gauge("storage_used_bytes", float64(x.Bytes), x.Storage)
		w.gauge("storage_growth_bytes", float64(x.PerDay), x.Storage)
		if x.Free != nil {
			w.gauge("storage_free_bytes", float64(*x.Free), x.Storage)
		}
	}
	for _, x := range s.Usage.Databases {
		w.gauge("database_used_bytes", float64(x.Bytes), x.Database)
	}
	for _, x := range s.Overview.Storages {
		if x.State != "unknown" {
			w.flag("storage_up", x.State == "ready", x.Name)
		}
	}
}
