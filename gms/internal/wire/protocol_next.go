//go:build fencepost_next

package wire

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Protocol is one more than that of the build without the tag: this build stands for the next version, in tests of an
// upgrade. No program is released with it.
const Protocol = 2

// rehearsal is the number of a command that came with version 2. It is not in the .proto file, so that the build without
// the tag knows nothing of it.
const (
	rehearsal protoreflect.FieldNumber = 4000
	ofCommand protoreflect.FullName    = "fencepost.wire.Command"
)

func later(message protoreflect.FullName, field protoreflect.FieldNumber) uint32 {
	if message == ofCommand && field == rehearsal {
		return 2
	}
	return 0
}

// Rehearse makes the command of version 2: it keeps a word.
func Rehearse(word string) *Command {
	c := &Command{}
	c.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, rehearsal, protowire.BytesType), word))
	return c
}

// Rehearsal reads the command of version 2; false when c is another one.
func Rehearsal(c *Command) (word string, ok bool) {
	for rest := c.ProtoReflect().GetUnknown(); len(rest) > 0; {
		number, kind, n := protowire.ConsumeTag(rest)
		whole := protowire.ConsumeFieldValue(number, kind, rest[max(n, 0):])
		switch {
		case n < 0 || whole < 0:
			return "", false
		case number == rehearsal && kind == protowire.BytesType:
			word, whole = protowire.ConsumeString(rest[n:])
			return word, whole >= 0
		}
		rest = rest[n+whole:]
	}
	return "", false
}
