//go:build mutant_holders

package postgres

const mutant = "holders"
