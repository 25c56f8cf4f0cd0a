// Package notify tells people, by web hook and e-mail, of what needs them, and an outside watcher that all is well.
//
//	n := notify.New(notify.Config{Telling: notify.Telling{Rules: rules, Receivers: receivers}, Store: store, Look: look, ...})
//	n.Start(ctx)
//	...
//	n.Renew(notify.Telling{...})    // from the next look on it tells otherwise
//	n.Stop()
//
// Which messages there are is decided by Plan, which is pure: the alarms and recoveries of now and what was told before go
// in, messages and what is told then come out. The Notifier keeps both in a Store that the whole group shares.
//
// What it promises:
//
//   - Once per event in the group: a message is put into the shared outbox in the same transaction in which its event is
//     noted as told, and only where nobody has noted anything meanwhile. One node delivers, the one that may (Config.May).
//     A node that dies between delivering and noting so makes one message come twice, under the same id: receivers that
//     care drop the second (header Fencepost-Message, Message-ID of a mail).
//   - Each kind of event has one Rule. An alarm is told when it has lasted Rule.After, together with all of the same cause that
//     go to the same receivers; again after Rule.Repeat; and its end once it has been away for Rule.After. What came and went in
//     between is never told. A recovery is told even when it took a millisecond. What nobody wants to hear of any more is
//     forgotten, without an all-clear.
//   - A receiver that does not answer is tried again, from ten seconds apart to an hour, for a day; others are not held up.
//     Then the message is dropped, logged, and told of by Problems.
//   - A heartbeat is sent only while there is a quorum, the ledger answers and every database has its backup in time. So
//     the outside watcher rings also when nobody is left to tell anything.
//
// A message holds names, times and sentences for people, no secrets. URLs of hooks may be secrets, and are never shown.
package notify
