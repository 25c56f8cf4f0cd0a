//go:build mutant_guard

package postgres

const mutant = "guard"
