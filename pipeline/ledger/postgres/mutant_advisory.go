//go:build mutant_advisory

package postgres

const mutant = "advisory"
