package state

import (
	"bytes"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// headroom is kept free between the highest base and the end of numbers, so that no base, however wrong, leaves a
// group without positions and tokens.
const headroom = 1 << 50

// MaxBase is the highest base that FormGroup and Rebase take.
const MaxBase = wire.MaxToken - headroom

// defaultMaxAttempts stands for Settings.max_attempts 0.
const defaultMaxAttempts = 3

func (m *Machine) formGroup(c *wire.FormGroup) *wire.Result {
	if m.Formed() {
		if bytes.Equal(m.clusterID, c.GetClusterId()) {
			return m.noChange()
		}
		return m.refuse(wire.Code_CODE_STALE, "the group is formed already, with another id")
	}
	if len(c.GetClusterId()) != idSize || c.GetBase() > MaxBase || !validSettings(c.GetSettings()) || c.GetProtocol() > maxProtocol {
		return m.invalid("cluster id, base or settings are out of bounds")
	}
	m.clusterID = bytes.Clone(c.GetClusterId())
	m.base, m.counter = c.GetBase(), c.GetBase()
	m.settings = cloneSettings(c.GetSettings())
	m.agree(max(1, c.GetProtocol()))
	m.emit(GroupFormed{ClusterID: m.clusterID, Base: m.base})
	return m.ok()
}

// rebase raises base and counter above everything reached; positions and tokens never go back.
func (m *Machine) rebase(c *wire.Rebase) *wire.Result {
	if c.GetBase() > MaxBase || !validText(c.GetReason()) {
		return m.invalid("base or reason is out of bounds")
	}
	if c.GetBase() < m.Position() || c.GetBase() < m.counter {
		return m.refuse(wire.Code_CODE_STALE, "the base is below what is reached")
	}
	m.base, m.counter = c.GetBase(), c.GetBase()
	m.emit(Rebased{Base: m.base, Reason: c.GetReason()})
	return m.ok()
}

func (m *Machine) changeSettings(c *wire.ChangeSettings) *wire.Result {
	if c.GetSettings() == nil || !validSettings(c.GetSettings()) {
		return m.invalid("settings are out of bounds")
	}
	if proto.Equal(m.settings, c.GetSettings()) {
		return m.noChange()
	}
	m.settings = cloneSettings(c.GetSettings())
	m.emit(SettingsChanged{Settings: m.settings})
	return m.ok()
}

func validSettings(s *wire.Settings) bool {
	return s.GetSelector() >= 0 && s.GetSelector() <= wire.Selector_SELECTOR_SUCCESSOR && s.GetMaxAttempts() <= 1000
}

func cloneSettings(s *wire.Settings) *wire.Settings {
	return &wire.Settings{Selector: s.GetSelector(), MaxAttempts: s.GetMaxAttempts()}
}

func (m *Machine) maxAttempts() uint32 {
	if n := m.settings.GetMaxAttempts(); n > 0 {
		return n
	}
	return defaultMaxAttempts
}

// Formed reports whether FormGroup has been applied; nothing else is before it.
func (m *Machine) Formed() bool { return m.clusterID != nil }

// ClusterID is the group's id, 16 bytes; nil until it is formed.
func (m *Machine) ClusterID() []byte { return bytes.Clone(m.clusterID) }

// Settings are the group's, as set: zero fields mean the defaults (rendezvous, 3 attempts).
func (m *Machine) Settings() *wire.Settings { return m.settings }
