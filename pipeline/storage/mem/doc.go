// Package mem is a storage in memory, for tests and for trying things out.
//
//	s := mem.New()                       // a store of its own
//	stores := mem.NewRegistry()          // or several handles of stores that share a name
//	a, b := stores.Open("disk"), stores.Open("disk")
//
// What it promises is the contract of package storage, and nothing more, on purpose: what a real storage would refuse,
// it refuses too (invalid names, an object below an object), so that code tested on it does not meet surprises later.
//
// Two things differ from the others. It holds objects wholly in memory, so "memory is bounded" cannot hold for it. And
// everything is gone when the process ends; a new handle of a registry sees what the old one left, as a disk would show
// it, but only within the process.
//
// The invariants: an object becomes visible whole, under one lock; versions are numbers of one counter per store, so no
// version ever names two contents; bytes handed out are never changed, so an open reader keeps reading what it opened
// after the object was replaced or deleted. A listing is the picture of one moment.
package mem
