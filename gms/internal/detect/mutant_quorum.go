//go:build mutant_quorum

package detect

const mutant = "quorum"
