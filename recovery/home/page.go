package home

import (
	"strings"
	"unicode/utf8"
)

// The page of a generation: a header, then one slot per writer. A cause is written whole into its writer's own slot before
// one compare-and-swap of the winner makes it the first, so that a writer that dies in the middle leaves nothing half said.
//
//	header  0  8  magic
//	        8  4  winner: 1 + number of the slot whose cause came first; 0 while the generation is good
//	       16  8  generation
//	slot    0  8  beats
//	        8  4  length of the cause
//	       12     cause
const (
	pageMagic  = "FPPAGE1\n"
	winnerAt   = 8
	genAt      = 16
	headerSize = 4096
	slotSize   = 512
	lengthAt   = 8
	causeAt    = 12
	maxCause   = slotSize - causeAt
)

// Slots: the keeper's, the one for callers without a seat (fail.lock is held meanwhile), then one per seat.
const (
	keeperSlot   = 0
	strangerSlot = 1
	seatSlot     = 2
)

func pageSize(seats int) int { return headerSize + (seatSlot+seats)*slotSize }

func slotAt(slot int) int { return headerSize + slot*slotSize }

// tidyCause makes a cause fit: one line, valid UTF-8, never empty.
func tidyCause(cause string) string {
	cause = strings.Join(strings.Fields(strings.ToValidUTF8(cause, "?")), " ")
	if cause == "" {
		return "no cause given"
	}
	for len(cause) > maxCause {
		_, n := utf8.DecodeLastRuneInString(cause)
		cause = cause[:len(cause)-n]
	}
	return cause
}
