package processortest

import (
	"testing"

	"github.com/fencepost/fencepost/pipeline/processor"
)

// A Subject is a processor and what may be asked of it beyond the contract.
type Subject struct {
	// Processor must be able to read what it writes.
	Processor processor.Processor
	// Memory bounds the heap, in bytes, of one writer and one reader that work on a long stream together. Required.
	Memory uint64
	// Vague says that the format cannot tell, at its very end, a cut from a change and from an appendix: there an
	// error of another class will do. (An authenticated last chunk only fits or does not.)
	Vague bool
}

// Run checks that s keeps the contract of package processor. It takes a few seconds.
func Run(t *testing.T, s Subject) {
	parts := []struct {
		name string
		run  func(t *testing.T, s Subject)
	}{
		{"RoundTrip", roundTrip},
		{"Concurrent", concurrent},
		{"Cut/Everywhere", cutEverywhere},
		{"Cut/Large", cutLarge},
		{"Cut/NotClosed", notClosed},
		{"Cut/Nothing", nothing},
		{"Flip/Everywhere", flipEverywhere},
		{"Flip/Large", flipLarge},
		{"Swap", swap},
		{"Foreign", foreign},
		{"Appendix", appendix},
		{"SourceErrors", sourceErrors},
		{"TargetErrors", targetErrors},
		{"Closed", closed},
		{"Dropped", dropped},
		{"Memory", memory},
	}
	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) { p.run(t, s) })
	}
}
