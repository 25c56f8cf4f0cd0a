// Package protocol tells which protocol of a group a record in its state cache needs.
//
// While programs of two versions are in a group it writes what both read (gms.Put.Protocol, `fencepost upgrade`). Who keeps
// records as structs marks each field that came later with the protocol that it came with:
//
//	type row struct {
//		Name  string `json:"name"`
//		Limit int    `json:"limit,omitempty" protocol:"3"`
//	}
//	put := gms.Put{Key: key, Value: text, Protocol: protocol.Needs(r)}
//
// A row without a limit is then written at once, one with a limit after the upgrade was finalized.
//
// What holds: a record needs the highest protocol of all fields that are set in it, at whatever depth, and of the values that
// say so themselves (a method Needs() uint32); a field that is zero needs nothing; a record without marks needs 1. Types that can
// need nothing are known after a first look. A mark that is no number is a mistake in the program, and panics.
package protocol
