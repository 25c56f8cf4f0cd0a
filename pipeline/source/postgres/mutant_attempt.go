//go:build mutant_attempt

package postgres

const mutant = "attempt"
