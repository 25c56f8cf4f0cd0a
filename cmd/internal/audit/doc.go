// Package audit is the trail of who changed what: one sequence of records for the whole group, each of which holds the hash
// of the one before, so that none can be taken out, added or altered without all later ones saying so.
//
//	trail := audit.New(store, "n1", time.Now)
//	asked, err := trail.Append(ctx, audit.Entry{Actor: "ann", Action: "backup.delete", Target: "b1", Phase: audit.Asked})
//	...                                                       // not done when that failed
//	_, err = trail.Append(ctx, audit.Entry{..., Phase: audit.Done, Of: asked.Seq, After: answer})
//
// What holds:
//
//   - A change is written down before it is made (Asked) and again when it is known what became of it (Done, Failed). An
//     Asked without the other is one whose node died, or could not write, in between. Refused is one record: nothing was
//     made.
//   - Numbers have no gaps. The group keeps the last Keep records; every node copies each to its own disk (Copier), where it
//     stays, and to the system's log if that is wanted. A node that was away for longer than Keep records writes down which
//     ones it has missed.
//   - Requests and answers are in it as JSON, cut to MaxText, with every text under a name that sounds like a secret
//     replaced (Redact).
//   - Check finds the first record of a list, of the group's or of a copy, that does not fit the one before. A whole chain
//     that was made anew is found by comparing it with another node's copy: the hashes differ.
//
// The package is the chain; who asks and what is recorded is decided where requests are handled.
package audit
