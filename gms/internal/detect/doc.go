// Package detect decides when a run may be closed: the evidence table of DESIGN.md section 5 as a pure machine.
//
// The leader of the group owns one [Machine] for its term. It feeds it everything that hints at the life or the death of
// a run (renewals, session streams, gossip, answers of probes and pings, ticks of a clock) and carries out what it
// returns: probe a host, ping a run, ask the voters, commit a Suspect, an Unsuspect or a CloseRun. Time is an argument,
// a duration on the leader's clock that counts suspend; there is no clock, socket, lock or goroutine in here, so every
// row of the table is tested by a script of events.
//
// Three kinds of knowledge, and what each may do:
//
//   - Proof acts in milliseconds. A session stream that broke without goodbye, and then a host whose kernel refuses the
//     cluster port and the gossip port on TCP and answers "port unreachable" on UDP, and then a direct ping that nobody
//     answers: the process is gone ([Refused]). Where no stream to this leader has broken (a former leader never had one,
//     and whoever has not come yet since this one leads) a majority of the voters must have seen the refusal.
//     So does the obituary of the run's own warden, when nobody answers a ping sent after it ([Buried]).
//   - Silence acts in seconds. No renewal for the run's own TTL while gossip holds it dead, or for three TTLs whatever gossip
//     says ([Lapsed]). Time in which the leader itself was starved or suspended does not count, and a new leader begins
//     every run's TTL anew.
//   - Everything less is suspicion: it is told, and withdrawn, and closes nobody. A firewall that resets one port, a
//     watchdog's report and a lost datagram are suspicion.
//
// Rules of PROTOCOL.md that live here: 3 (a proof is void while the run answers a ping sent after it), 6 (lapsed is
// measured from the receipt of the last renewal or the leader's own start), and the leader's half of 4 (a run whose
// closing is proposed is not renewed until the outcome is known: see [Machine.Closing]).
package detect
