// Package signals tells a host app what happens to its group, and says what delivery promises.
//
// A signal is one event: a member joined, failed, left, is to be recovered. The host registers action factories with a
// Router; the group delivers signals to the router; the router makes one action per signal and runs it.
package signals
