// Package recovery makes sure that what a dead member was doing is taken over, by one member, under a fence.
//
// The log of the group appoints: for each closed run and each component at most one recoverer at a time. A [Manager]
// runs on every member. It looks at what the log wants of this member, delivers a FailureRecoverySignal to the action
// registered for the component, keeps the fence renewed while the action works, and tells the log how it ended.
//
//	group, err := gms.New(cfg)
//	err = group.Router().AddRecoveryFactory("payments", signals.HandleRecovery(recoverPayments))
//	manager, err := recovery.ForGroup(group, recovery.Options{})
//	...
//	err = group.Start(ctx)
//	err = manager.Start(ctx)
//	err = manager.AwaitUnfenced(ctx, "payments") // before taking new work
//	...
//	manager.Stop()
//	err = group.Stop(ctx)
//
// # The life of an appointment
//
//	                 CloseRun                          hand-over: new index, next candidate,
//	                    │                              adopted claims are orphans again
//	                    ▼                                    ▲
//	waiting ─────▶ appointed ──Acquire──▶ raised ──Release──▶│ ended
//	   ▲               │                    │ ▲ │            │
//	   │ no candidate  │                    │ └─┘ error, ErrWorkLeft: fence kept,
//	   └───────────────┤                    │     delivered again after a pause
//	                   │                    │
//	                   └────────────────────┴──▶ hand-over when: the appointee dies or leaves; it fails max_attempts
//	                                             times; it does not acquire or renew within fence_ttl; something it
//	                                             needs is unavailable; an operator says so
//	parked ◀── every candidate has failed; an operator retries or drops it
//
// The log owns this picture. The manager holds one job per appointment with a state of its own:
//
//	running ──▶ settling (Release on its way) ──▶ released ──▶ spent
//	   │  ▲                                                      ▲
//	   │  └── resting (failed; delivered again after the pause)   │
//	   └────▶ moved (not ours any more; the action is ending) ────┘
//
// # Duties of the host, in order
//
//  1. Call AwaitUnfenced, or do other work while IsFenced is true, before the component takes new work on this node. A
//     recovery action never waits for a fence: two restarted nodes would wait for each other.
//  2. In the action, Acquire before anything else. Then shut the dead run and every earlier holder out of whatever the
//     recovery writes to, with the fence's token, and only then look.
//  3. Work under Fence.Context and stop when it ends. Call Progress if the component promised it.
//  4. Settle every orphan: Adopt what goes on here, Free what was reverted, quarantine (End) what kills its process.
//  5. Return nil when it is done. The action may run again after a crash before that, with a larger token: what was done
//     must be recognized, not done again.
//
// # Promises
//
//   - The signal is delivered at least once until the fence is lowered, also after this member's restart, since the
//     manager works from the log's state and not from events.
//   - At most one action per recovery runs here, even when an appointment leaves and comes back.
//   - Returning nil is Release, and is repeated until the log has answered. Returning an error, a panic and returning
//     nil without Acquire are failures: they are counted in the log, and the fence is kept meanwhile. Pauses between
//     deliveries of one recovery grow from MinBackoff to MaxBackoff.
//   - ErrUnavailable, and a fence lost because the group could not renew it, are not failures: they never park a
//     recovery.
//   - When the appointment moves, the action's context ends with ErrNotAppointed; when the fence is lost, with
//     ErrFenceLost. What the action says after a hand-over counts for nothing.
//   - A fence is renewed from Acquire until Release, in the pauses too, unless the action promised progress and gives
//     none. For exclusion by lease Acquire raises the fence at once, and returns when every former holder's lease has run
//     out by this member's clock, or nothing of that holder is left by the word of its own warden, whichever is first.
//   - An action that has not acquired when its appointment moves on is named in this member's log.
//   - After Stop nothing of this package runs. An interrupted action has not failed.
//
// # What is not promised
//
//   - That a process that was stopped for a long time writes nothing afterwards: only a resource that checks tokens can
//     promise that. The fence's context ends in time on this member's clock, which is all that a clock can do.
//   - That the action runs once. It is the Release that is recorded once.
//   - That an action which ignores its context ends. Until it does, its recovery is not delivered again here, and the
//     log hands it to another member.
package recovery
