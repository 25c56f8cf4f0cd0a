//go:build mutant_base

package gms

const mutant = "base"
