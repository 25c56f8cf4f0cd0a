//go:build mutant_commit

package postgres

const mutant = "commit"
