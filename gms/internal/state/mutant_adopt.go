//go:build mutant_adopt

package state

const mutant = "adopt"
