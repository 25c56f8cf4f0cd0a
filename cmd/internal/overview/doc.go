// Package overview judges: from what a node knows of its group, its ledger and its storages it makes one
// api.Overview, with everything in it that needs a person. The status command, the page, readiness, the heartbeat and the
// notifications all show this one judgement, so that they cannot disagree.
//
//	o := overview.Judge(overview.Facts{Now: now, Status: s, View: v, Databases: dbs, ...})
//
// Judge is pure: no clock, no socket, no lock. What it promises:
//
//   - Each alarm has a kind and what it is about, which name it: the same alarm keeps its name for as long as it lasts,
//     and none appears twice. The worst come first, then by name.
//   - A database is judged by its newest good backup: complete, not suspect (or accepted), with a copy that is there. Its
//     age counts from its snapshot. One of which no backup was ever good is overdue when its rpo has passed since the
//     group began to expect one.
//   - Facts that are missing (a node without a ledger, a storage not looked at yet) make no alarm of their own, but for
//     those that say so: a ledger or quorum that is away.
//
// Keeper holds the overview for a second, whoever asks, because what it is made of costs reads of the ledger.
package overview
