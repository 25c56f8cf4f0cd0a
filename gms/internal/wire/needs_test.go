package wire

import (
	"testing"

	"google.golang.org/protobuf/proto"
)

// Nothing that the .proto files have needs more than this build's protocol, whatever is in it.
func TestNeedsOfWhatIsKnown(t *testing.T) {
	for _, m := range []proto.Message{
		&Command{}, &Command{Op: &Command_OpenRun{OpenRun: &OpenRun{Role: Role_ROLE_CORE, Components: []*Component{{Name: "c"}}, Details: map[string][]byte{"k": nil}}}},
		&Entry{Commands: []*Command{{Op: &Command_CacheTxn{CacheTxn: &CacheTxn{Puts: []*CachePut{{Key: &CacheKey{Key: "k"}}}}}}}},
	} {
		if got := Needs(m); got > Protocol {
			t.Errorf("%v needs %d", m, got)
		}
	}
	broken := &Command{}
	broken.ProtoReflect().SetUnknown([]byte{0xff})
	for _, m := range []proto.Message{broken, &CloseRun{Evidence: 99}, &Command{Op: &Command_CloseRun{CloseRun: &CloseRun{Evidence: 99}}}} {
		if got := Needs(m); got <= Protocol {
			t.Errorf("%v needs %d", m, got)
		}
	}
}
