//go:build mutant_tombstone

package pipeline

const mutant = "tombstone"
