// Package gms is the group: which nodes are here, what they agreed on, and what they share.
//
// Nodes find each other by gossip (SWIM, as memberlist implements it) and keep one replicated log (Raft, as
// hashicorp/raft implements it). Gossip only proposes; the log disposes: a member is a run that the log has opened, a
// view is the agreed list of open runs at one position of the log, and every member sees the same views in the same
// order. On top of the log stand the distributed state cache, claims and locks, and the recoveries of what dead runs
// left behind.
//
// # A host's duties, in order
//
//	group, err := gms.New(gms.Config{Node: "n1", Home: "/var/lib/app", Seeds: []string{"10.0.0.2:7946"}, Logger: log})
//	err = group.Router().AddRecoveryFactory("payments", signals.HandleRecovery(recoverPayments))
//	...
//	err = group.Start(ctx)         // takes the home, opens the ports
//	err = group.AwaitStanding(ctx) // a run is open and holds its lease
//	...                            // work, each piece under a claim, each effect with the claim's token
//	err = group.Stop(ctx)          // leaves as planned, hands leadership over
//
// [DefaultConfig] is a group of one for tests. Register the same factories on all nodes. Run package recovery's Manager beside the group: it delivers
// FailureRecoverySignals from the replicated state. Watch [Group.Changed] and end the process when [Group.Err] is set.
//
// # What is promised
//
//   - One history: every member applies the same sequence of views, and a version never goes back, also not after a
//     group was formed anew (positions begin above the wall clock in microseconds).
//   - A run that renews its lease in time is closed by nobody but itself, its own home or an operator. The evidence that
//     closes a run is in package gms/internal/detect: proof in milliseconds, silence after the TTL.
//   - For each closed run and each component it had registered, or had work in, exactly one member at a time is
//     appointed to recover, until exactly one Release is recorded.
//   - A guarded transaction of the state cache ([Txn]) takes effect only if, at that very position of the log, its run is
//     open, its claim and its fence are held: effects of the dead are refused where they would become visible.
//   - A command's outcome is never guessed: it is repeated under the same request id until it is known, and a late grant
//     that nobody waits for any more is given back.
//   - Members beyond Config.Followers, spectators and watchdogs have no part in the log: one of those that follow it feeds
//     each of them, and they see and may do the same as all others. Nobody's vote hangs on them.
//   - Messages of one sender to one component of one member arrive in order and at most once; who is not reached is an error.
//   - Locks are granted first come first served; a lock's client is told when its limit has passed.
//   - A watch of the state cache misses no change, or says ErrGap.
//   - Programs of neighbouring protocols ([Protocol]) are members of one group, which goes on to write what the older one
//     reads until [Group.FinalizeUpgrade]. What is not understood is never skipped: who meets it ends with ErrProtocol.
//
// # What there is
//
// What group services for Java hosts (Shoal) offer, and where it is here.
//
//	signals: package signals, by Router
//	  JoinNotification                  signals.JoinNotification; Facts.Rejoin when an earlier run of the node was closed
//	  JoinedAndReadyNotification        signals.JoinedAndReadyNotification; Facts.ReadyView and PreviousReadyView
//	  FailureSuspected, withdrawn       signals.FailureSuspected, FailureNoLongerSuspected
//	  FailureNotification               signals.FailureNotification; Facts.Evidence says why, Member.Role whose
//	  FailureRecovery                   signals.FailureRecoverySignal, by recovery.Manager; Acquire and Release on it
//	  PlannedShutdown                   signals.PlannedShutdown; Facts.Shutdown tells instance from group
//	  GroupLeadershipNotification       signals.GroupLeadershipNotification
//	  Message                           signals.MessageReceived, by Router.AddMessageFactory
//	  group startup and shutdown        signals.GroupStartup, GroupShutdown; Facts.Phase; View.GroupStarting, GroupStopping
//	  (not there)                       signals.QuorumLost, QuorumRegained
//	the handle
//	  join, leave                       Group.Start, AwaitStanding; Group.Stop, Changed, Err
//	  members: core, all, start times   Group.View, Members; signals.Member.Role, StartTime
//	  members that are alive and ready  Group.ReadyViews; signals.Member.Ready; Group.SetReady
//	  previous views                    Group.Views, ViewsSince; Facts.PreviousView
//	  member state                      Group.MemberState: StateStarting, StateAlive, StateAliveAndReady, StateInDoubt,
//	                                    StateDead, StateStopping, StateStopped, StateUnknown
//	  isMemberAlive                     Group.IsMemberAlive
//	  leader, isGroupLeader             Group.Leader; Leader() == the node of Self()
//	  raiseFence, lowerFence, isFenced  Group.RaiseFence, LowerFence, IsFenced, MaintenanceFences
//	  failover selectors                Config.Selector, or the host's own Config.Order, which runs on the leader
//	  (not there)                       Group.Recoveries, Ended: Recovery.Steps is the time line of each
//	  (not there)                       Group.CloseRun, RetryRecovery, DropRecovery, ForceFence: what a person decides
//	  send to all, to a list, to one    Group.Send, MessageStats
//	  member details                    Config.Details, Group.SetDetail, RemoveDetail; signals.Member.Details
//	  distributed state cache           Group.Cache: Get, List, Commit (puts, deletes, conditions on versions), Watch
//	  announceWatchdogObservedFailure   Group.AnnounceObservedFailure
//	  group startup, shutdown           Group.AnnounceGroupStartup, AnnounceGroupShutdown, IsGroupBeingShutdown
//	  several groups in one process     one Group each, with homes and ports of their own
//	roles: Config.Role
//	  CORE, SPECTATOR, WATCHDOG         signals.Core, Spectator, Watchdog; and Witness, which only votes
//
// # After a restart
//
// A process that is started again is a new run, and begins with a JoinNotification for each member that is there. A host
// that must know what happened meanwhile keeps, in its own store and beside the effects of its handlers, the View.Version
// of the last signal that it has handled, and gives it as [Config.ResumeFrom]: the first run is then told of the joins,
// failures and departures since. Recoveries need none of this: they are delivered until they have ended. A host whose
// handlers keep nothing, as fencepostd's, leaves it at 0.
//
// # What is not
//
//   - A lease tells a holder when to stop; what a stopped process does when it wakes is excluded only by tokens.
//   - Two voters do not survive the loss of one; three survive one, five two.
//   - A gossip key says who is of the group, not which node: whoever has it can say anything in gossip, and nothing is
//     decided by that alone. A certificate says which node, and speaks for no other (package gms/certs).
//   - A port that other machines may reach, without both, is refused when the group is made.
//
// # How it is built
//
// Group is a thin shell around pure parts: gms/internal/state (commands in, results and changes out), gms/internal/detect
// (events in, proposals out), the lease of a run and the rule of the voters in this package. One file is one idea:
//
//	group.go       New, Start, Stop, what a host asks; operator.go what an operator asks
//	endpoint.go    what a port is bound to and what others dial; ports.go opens them
//	senders.go     in whose name each call speaks; detour.go signs what another member brings
//	rotation.go    the gossip keys of a running group are changed: keyring.go decides, keykeeper.go keeps a node's,
//	               ringsync.go fetches what was missed; expiry.go warns of certificates
//	home.go        the local directory; homecheck.go what the group has on record about it
//	forming.go     cluster id, bootstrap list, what the home remembers; peers.go what gossip says
//	standing.go    one run after the other: gossip, OpenRun, joining again and again
//	session.go     leases of the run and of its fences; attend.go renewals and the stream to the leader, attended.go
//	               that stream at the leader's side
//	leadership.go  terms, voters; leading.go the leader's duties of one term: renewals.go, probing.go,
//	               expiring.go, sayings.go, audits.go
//	feed.go        what a member beyond the followers does instead of following the log: another one brings it; guide.go
//	               who leads by what others tell; feeder.go, kept.go the side that brings it
//	succession.go  who stands for election when the leader is proven dead
//	commander.go   request ids and repeats; batcher.go commands into entries; replica.go the state
//	endings.go     since when a fence's earlier holders are gone
//	signalling.go  changes of the log into signals; resuming.go goes on after a snapshot or another process; quorum.go;
//	               shown.go what hosts see of runs and views; chronicle.go what operators find in the log
//	watchdog.go    reports of deaths; details.go, memberstate.go what members say, and what is known, of themselves
//	reaping.go     who has been gone for long; pair.go what two members cannot do
//	history.go     past views, ready views, announcements of the whole group
//	messages.go    messages between members
//	health.go      what operators want to know, and alarms
//	locks.go       poll locks and their queues; watch.go changes of the state cache
package gms
