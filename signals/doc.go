// Package signals tells a host app what happens to its group, and says what delivery promises.
//
// A signal is one event: a member joined, failed, left, is to be recovered. The host registers action factories with a
// [Router]; the group delivers signals to the router; the router makes one action per signal and runs it. The package
// knows nothing of clusters: whoever delivers decides what happened.
//
//	router := signals.NewRouter(signals.Options{})
//	router.AddActionFactory(signals.Handle(onChange), signals.JoinNotification, signals.FailureNotification)
//	router.AddMessageFactory("payments", signals.Handle(onMessage))
//	router.AddRecoveryFactory("payments", signals.HandleRecovery(recoverPayments))
//
// # Duties of the host, in order
//
//  1. Register the same factories in the same way on every node, before Start where possible. A component's recovery
//     factory offers this node as a candidate; one that registers later is a candidate from then on.
//  2. Start the router, then what delivers to it.
//  3. Return from Consume soon after its context ends.
//  4. In a recovery: Acquire, do everything under the fence's context and with its token, settle every orphan, return
//     nil (or Release). An error or a panic means "not recovered"; ErrUnavailable means "not now".
//  5. Stop what delivers, then the router.
//
// # Promises
//
//   - Each factory has its own queue and worker. It sees signals in the order in which they were delivered, so signals
//     about one member in the order of the log.
//   - A slow or panicking action delays and harms nobody but its own factory. A panic is an error with a stack.
//   - Deliver never blocks. Notices wait without limit (they are few; a growing backlog is named in the log); messages
//     wait within a bound and are refused beyond it, so that their sender can be told.
//   - Signals never change and share nothing with the actions that read them.
//   - A FailureRecoverySignal is delivered at least once to the appointed member until its fence is lowered. Every other
//     signal is delivered at most once per run of this process.
//   - Recoveries of different appointments run beside each other, each on its own goroutine; their order says nothing.
//   - Stop ends contexts with the cause ErrStopped and returns when every action has returned.
//
// # What is not promised
//
//   - Nothing orders signals between two factories, nor a recovery among the other signals.
//   - Signals queued at Stop are dropped. Who needs the truth reads the view; signals say that it changed.
//   - An action that never returns keeps its factory, and Stop, for ever: Go has no way to end it.
package signals
