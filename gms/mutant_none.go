//go:build !mutant_lease && !mutant_base

package gms

// mutant is the rule that a build tag takes out (see package chaos), for tests of those who look for its absence. No program
// is built with one.
const mutant = ""
