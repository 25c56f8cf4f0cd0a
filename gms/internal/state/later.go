//go:build !fencepost_next

package state

import "github.com/fencepost/fencepost/gms/internal/wire"

// isLater tells whether c is a command of a later version than the .proto files have; see wire/protocol_next.go.
func isLater(*wire.Command) bool { return false }

// executeLater carries out such a command.
func (m *Machine) executeLater(RunID, *wire.Command) *wire.Result {
	return m.refuse(wire.Code_CODE_UNKNOWN_COMMAND, "the command is not known to this version")
}
