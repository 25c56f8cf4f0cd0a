//go:build !fencepost_next

package wire

import "google.golang.org/protobuf/reflect/protoreflect"

// Protocol is the newest version of the formats in this package that this build reads and can write. Which one a group
// writes is agreed in its log.
const Protocol = 1

// later is the version that a field came with; 0 for those that version 1 had, and for those that this build does not
// know. A version that adds fields lists them here.
func later(protoreflect.FullName, protoreflect.FieldNumber) uint32 { return 0 }
