package wire

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// unread is what a thing needs that this build does not know: some later version.
const unread = Protocol + 1

// Needs is the lowest version whose readers understand all of m: each field, each value of an enumeration. It is above
// Protocol when this build does not. Builds may differ in the number, but never in whether it is above the version that a
// group of both of them writes.
func Needs(m proto.Message) uint32 { return needs(m.ProtoReflect()) }

func needs(m protoreflect.Message) uint32 {
	need, name := uint32(1), m.Descriptor().FullName()
	for rest := m.GetUnknown(); len(rest) > 0; {
		number, _, n := protowire.ConsumeField(rest)
		if n < 0 {
			return unread
		}
		if v := later(name, number); v != 0 {
			need = max(need, v)
		} else {
			need = unread
		}
		rest = rest[n:]
	}
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		need = max(need, later(name, field.Number()), needsOfField(field, v))
		return true
	})
	return need
}

// needsOfField is what the content of a field needs.
func needsOfField(field protoreflect.FieldDescriptor, v protoreflect.Value) (need uint32) {
	switch {
	case field.IsMap():
		if field.MapValue().Message() != nil {
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				need = max(need, needs(v.Message()))
				return true
			})
		}
	case field.IsList():
		for i := range v.List().Len() {
			need = max(need, needsOfValue(field, v.List().Get(i)))
		}
	default:
		need = needsOfValue(field, v)
	}
	return need
}

func needsOfValue(field protoreflect.FieldDescriptor, v protoreflect.Value) uint32 {
	switch {
	case field.Message() != nil:
		return needs(v.Message())
	case field.Enum() != nil && field.Enum().Values().ByNumber(v.Enum()) == nil:
		return unread
	}
	return 1
}
