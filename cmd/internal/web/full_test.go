package web

import (
	"fmt"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

const deadRun = "7fd3a1c09be2465f8c3d10e2a4b596f7"

// fullSample is a group of three that has just lived through the death of a node, with long names, alarms, a task in each
// interesting state and a token as long as tokens are.
func fullSample() *sample {
	now := time.Now().UTC()
	ago := func(d time.Duration) *time.Time { t := now.Add(-d); return &t }
	free, token := int64(812<<30), uint64(1764538112345678)
	s := &sample{now: now, logs: map[string][]api.LogLine{}}
	s.overview = api.Overview{
		Status: api.Status{Node: "n1", Run: "19c2ab44", Group: "production", Leader: "n1", Version: "v1.2.0", View: 1764538000000128, State: "ready", Lease: "held", Ready: true, Problems: []string{}},
		Health: api.HealthAlarmed, Crew: api.Crew{Members: 3, Ready: 2, Suspected: 1, Voters: 3, Present: 2}, Active: 2, Waiting: 1,
		Alarms: []api.Alarm{
			{Kind: "backup", About: "warehouse", Severity: api.Critical, Text: "the newest good backup of warehouse is 31 h old, and one is wanted every 26 h", Hint: "fencepost backup create warehouse; see why the last one failed", Since: ago(5 * time.Hour)},
			{Kind: "member", About: "n3", Severity: api.Warning, Text: "node n3 is suspected: it answers late or not at all", Hint: "look at its load and its network", From: "n2"},
		},
		Databases: []api.DatabaseState{
			{Name: "a_database_with_a_name_as_long_as_names_may_be_in_postgresql_0063", State: api.BackupsNone, RPOMS: 93600000, Storages: []string{}},
			{Name: "shop", State: api.BackupsGood, Backup: "b1", LastGood: ago(3 * time.Hour), Storages: []string{"near", "far"}, Verified: ago(2 * time.Hour), Bytes: 412 << 20, RPOMS: 93600000, Due: ago(-23 * time.Hour), Next: ago(-21 * time.Hour), Running: "t1"},
			{Name: "warehouse", State: api.BackupsOverdue, Backup: "b2", LastGood: ago(31 * time.Hour), Storages: []string{"near"}, Bytes: 9 << 30, RPOMS: 93600000, Failed: "t3", Error: "storage far: no space left on device"},
		},
		Storages: []api.StorageState{{Name: "far", State: "away", Problem: "dial tcp 192.0.2.9:443: i/o timeout", Hint: "look whether it can be reached from n1", Since: ago(9 * time.Minute)}, {Name: "near", State: "ready"}},
	}
	for i, state := range []string{"ready", "ready", "suspected"} {
		n := fmt.Sprintf("n%d", i+1)
		s.members = append(s.members, api.Member{Node: n, Run: fmt.Sprintf("%032x", i+77), Role: "core", State: state, Ready: i < 2, Suspected: i == 2, Leader: i == 0, Voter: true, Self: i == 0,
			GossipAddr: fmt.Sprintf("10.0.0.%d:7946", i+1), ClusterAddr: fmt.Sprintf("10.0.0.%d:7947", i+1), Components: []string{"backup", "delete", "prune", "replicate", "restore", "verify"}, JoinedAt: ago(time.Duration(i+1) * 26 * time.Hour)})
	}
	s.members[0].Version, s.members[1].Version, s.members[2].Version = "v1.3.0", "v1.3.0", "v1.2.0"
	s.members[0].Protocol, s.members[1].Protocol, s.members[2].Protocol = 4, 4, 4
	s.refused = []api.Member{{Node: "n5", State: api.MemberRefused, Components: []string{}, Problem: "its certificate expired 3 days ago: renew it with fencepost certs renew"}}
	s.overview.Upgrade = api.Upgrade{Protocol: 3, Next: 4, Against: []string{"n4 is not here"}, Programs: []api.Program{
		{Node: "n1", Version: "v1.3.0", Protocol: 4, Here: true}, {Node: "n2", Version: "v1.3.0", Protocol: 4, Here: true}, {Node: "n3", Version: "v1.2.0", Protocol: 4, Here: true}, {Node: "n4"}}}
	s.fences = []api.Fence{{Component: "backup", Node: "n2", Run: deadRun, Holder: "n3", Token: token, State: api.FenceRaised, Evidence: "obituary", Since: ago(2 * time.Second), WaitingFor: "n3 to finish", Attempts: 1}}
	s.recovered = []api.Recovery{
		s.death("backup", token, now),
		{Component: "restore", Node: "n2", Run: deadRun, Evidence: "obituary", State: api.FenceParked, Recoverer: "n3", Token: token + 9, Attempts: 3, Tried: []string{"n1", "n3"}, Problem: "the target's server does not answer", Since: ago(time.Hour),
			Steps: []api.Step{{What: "closed", Position: token - 5, At: ago(time.Hour), Node: "n2"}, {What: "parked", Position: token + 10, At: ago(50 * time.Minute), Why: "every member has failed"}}},
	}
	s.tasks = []api.Task{
		{ID: "t1", Type: "create", RunType: "user", State: "uploading", Attempt: 2, MaxAttempts: 3, Node: "n3", Token: token + 3, Database: "shop", Backup: "b3", Storages: []string{"near", "far"}, Created: now.Add(-4 * time.Minute), Begun: ago(3 * time.Minute),
			Progress: api.Progress{Read: 181 << 20, Estimate: 412 << 20, Processed: 60 << 20, Stored: map[string]int64{"near": 60 << 20, "far": 58 << 20}, Rate: 3 << 20, LeftMS: 77000}},
		{ID: "t2", Type: "restore", RunType: "user", State: "completed", Final: true, Attempt: 1, MaxAttempts: 2, Node: "n1", Token: token - 90, Database: "shop", Backup: "b1", Target: "shop_copy", Undo: "shop__was_1764538112345588", Created: now.Add(-5 * time.Hour), Begun: ago(5 * time.Hour), Finished: ago(4 * time.Hour), Progress: api.Progress{Read: 412 << 20}},
		{ID: "t3", Type: "create", RunType: "user", State: "failed", Final: true, Attempt: 3, MaxAttempts: 3, Database: "warehouse", Error: "storage far: no space left on device", Hint: "make room, or take the storage out of the database's list", Created: now.Add(-7 * time.Hour), Begun: ago(7 * time.Hour), Finished: ago(6 * time.Hour)},
		{ID: "t4", Type: "verify", RunType: "internal", State: "planned", Attempt: 1, MaxAttempts: 3, Database: "shop", Backup: "b1", Created: now.Add(-time.Minute), Waits: []string{"n1 has no label lab", "n2 does not run"}, Needs: &api.Needs{Labels: []string{"lab"}, Client: 15}},
	}
	s.logs["t1"] = []api.LogLine{
		{At: now.Add(-3 * time.Minute), Attempt: 1, Token: token - 20, Node: "n2", Level: "info", Text: "attempt begins, type create, attempt 1"},
		{At: now.Add(-2 * time.Second), Attempt: 1, Token: token + 3, Node: "n3", Level: "info", Text: "task settled, was uploading, is planned: its node ended"},
		{At: now.Add(-time.Second), Attempt: 2, Token: token + 3, Node: "n3", Level: "warn", Text: "storage far is slow"},
	}
	s.backups = []api.Backup{
		{ID: "b1", Database: "shop", State: "completed", Token: token - 200, AsOf: ago(3 * time.Hour), RawBytes: 412 << 20, StoredBytes: 131 << 20, SHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", Storages: []api.Copy{{Storage: "near", State: "present", Bytes: 131 << 20}, {Storage: "far", State: "missing", Error: "object not found"}},
			Created: now.Add(-3 * time.Hour), Completed: ago(3*time.Hour - time.Minute), DurationMS: 61000, Verified: ago(2 * time.Hour), Pinned: true, Note: "before the release", MarkedBy: "ann", Globals: "without passwords"},
		{ID: "b2", Database: "warehouse", State: "completed", Token: token - 900, AsOf: ago(31 * time.Hour), RawBytes: 9 << 30, StoredBytes: 2 << 30, Storages: []api.Copy{{Storage: "near", State: "present", Bytes: 2 << 30}}, Created: now.Add(-31 * time.Hour), Completed: ago(30 * time.Hour), Suspect: []string{"it is half as large as the ones before it"}},
		{ID: "b3", Database: "shop", State: "creating", Token: token + 3, Created: now.Add(-4 * time.Minute)},
		{ID: "b4", Database: "shop", State: "deleting", Token: token - 2000, AsOf: ago(400 * time.Hour), RawBytes: 300 << 20, StoredBytes: 99 << 20, Created: now.Add(-400 * time.Hour)},
	}
	paris := time.FixedZone("CET", 3600)
	for i := range 5 {
		at := now.Add(time.Duration(21+24*i) * time.Hour).In(paris)
		if i == 0 {
			s.schedules = []api.Schedule{{Name: "nightly", Kind: "backup", Database: "shop", Cron: "0 2 * * *", Zone: "Europe/Paris", Last: &s.tasks[0]}, {Name: "weekly-check", Kind: "verify", Database: "warehouse", Cron: "0 5 * * 0", Zone: "UTC", Disabled: true, By: "ann", Skipped: "Sun 02:00: the one before was running"}}
		}
		s.schedules[0].Next = append(s.schedules[0].Next, api.Occurrence{Due: at, Start: at})
	}
	s.claims = []api.Claim{{Component: "backup", Item: "t1", RoundTrip: 2, Token: token + 3, Node: "n3", State: "adopted", Orphanings: 1, HolderLives: true}, {Component: "ingest", Item: "invoice-2026-0000000000000000001", RoundTrip: 1, Token: token - 44, Node: "n2", State: "orphan"}}
	for _, name := range []string{"backup", "delete", "ingest", "verify"} {
		s.parts = append(s.parts, api.Component{Name: name, Paused: name == "ingest", Fenced: name == "verify", Done: 1281, Failed: 2})
	}
	s.prune = api.Prune{Database: "shop", Stops: []string{"7 of 21 would go at once, more than a quarter"}, Decisions: []api.PruneDecision{{Backup: "b1", AsOf: ago(3 * time.Hour), Action: "keep", Reason: "the newest good one", Rules: []string{"last 7"}}, {Backup: "b4", AsOf: ago(400 * time.Hour), Action: "remove", Reason: "no rule holds it", Rules: []string{}}}}
	s.usage = api.Usage{
		Storages:  []api.StorageUsage{{Storage: "near", Bytes: 71 << 30, Backups: 44, PerDay: 900 << 20, Free: &free, Full: ago(-900 * 24 * time.Hour)}, {Storage: "far", Bytes: 68 << 30, Backups: 41}},
		Databases: []api.DatabaseUsage{{Database: "warehouse", Bytes: 90 << 30, Copies: 30, PerDay: 700 << 20}, {Database: "shop", Bytes: 12 << 30, Copies: 55}},
	}
	s.settings = []api.Setting{
		{Kind: "database", Name: "shop", Spec: []byte(`{"name":"shop","dsn":"file:/etc/fencepost/shop.dsn","needs":["eu","big"],"rpo":"26h","yield":"never"}`)},
		{Kind: "retention", Name: "shop", Spec: []byte(`{"database":"shop","last":3,"daily":7}`)},
		{Kind: "schedule", Name: "nightly", Spec: []byte(`{"name":"nightly","database":"shop","cron":"0 2 * * *","zone":"Europe/Paris","disabled":true}`)},
		{Kind: "server", Name: "pg1", Spec: []byte(`{"name":"pg1","dsn":"file:/etc/fencepost/pg1.dsn","max_dumps":2}`)},
		{Kind: "storage", Name: "cloud", Spec: []byte(`{"name":"cloud","kind":"s3","endpoint":"https://s3.example.org","bucket":"backups","access_key":"env:ACCESS","secret_key":"file:/etc/fencepost/s3.key"}`)},
	}
	s.servers = []api.Server{{Name: "pg1", Looked: ago(20 * time.Minute), By: "n2", Databases: []api.FoundDatabase{{Name: "pg1.books", DBName: "books", Since: now}, {Name: "pg1.old", DBName: "old", Since: now, Gone: ago(time.Hour)}}}}
	s.databases = []api.Database{{Name: "shop", From: api.FromSettings, Schedules: []string{"nightly"}, Retained: true}, {Name: "pg1.old", From: api.FromServer, Server: "pg1", Gone: ago(time.Hour)}, {Name: "warehouse", From: api.FromFile}}
	return s
}

// death is the recovery of a run that died two seconds ago.
func (s *sample) death(component string, token uint64, now time.Time) api.Recovery {
	at := func(ms int) *time.Time {
		t := now.Add(time.Duration(ms)*time.Millisecond - 2100*time.Millisecond)
		return &t
	}
	return api.Recovery{
		Component: component, Node: "n2", Run: deadRun, Evidence: "obituary", State: "released", Recoverer: "n3", Token: token, Attempts: 1, Tried: []string{"n1", "n3"}, Opened: token - 5, Ended: token + 8, Since: at(0), EndedAt: at(480),
		Steps: []api.Step{
			{What: "closed", Position: token - 5, At: at(0), Node: "n2", Why: "obituary of its warden"}, {What: "appointed", Position: token - 5, At: at(0), Node: "n1"}, {What: "raised", Position: token - 4, At: at(21), Node: "n1", Token: token - 3},
			{What: "failed", Position: token - 2, At: at(60), Node: "n1", Why: "the ledger does not answer"}, {What: "appointed", Position: token - 2, At: at(60), Node: "n3"},
			{What: "raised", Position: token, At: at(84), Node: "n3", Token: token}, {What: "quiesced", Position: token + 1, At: at(130), Node: "n2"}, {What: "released", Position: token + 8, At: at(480), Node: "n3", Token: token},
		},
	}
}
