//go:build mutant_lease

package gms

const mutant = "lease"
