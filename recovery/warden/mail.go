package warden

import (
	"context"
	"sync"
)

// letter is an obituary on its way.
type letter struct {
	what   What
	run    string // that it speaks of
	signed []byte
	quiet  bool // the node has said itself why it ended, and nothing comes after that
}

// mail carries obituaries out, in order, beside everything else.
type mail struct {
	cfg     Config
	letters chan letter
	carrier sync.WaitGroup
}

// room is for many deaths whose announcements all wait; what does not fit is dropped, and said.
const room = 64

func newMail(cfg Config) *mail {
	m := &mail{cfg: cfg, letters: make(chan letter, room)}
	m.carrier.Go(m.carry)
	return m
}

func (m *mail) carry() {
	for l := range m.letters {
		if !l.quiet {
			m.cfg.Logger.Info("warden: announces", "what", l.what.String(), "run", l.run)
		}
		ctx, cancel := context.WithTimeout(context.Background(), m.cfg.AnnounceFor)
		if err := m.cfg.Announcer.Announce(ctx, l.signed); err != nil {
			m.cfg.Logger.Warn("warden: an obituary reached nobody", "what", l.what.String(), "error", err)
		}
		cancel()
	}
}

// post never blocks.
func (m *mail) post(l letter) {
	select {
	case m.letters <- l:
	default:
		m.cfg.Logger.Warn("warden: an obituary was dropped, too many are on their way", "what", l.what.String())
	}
}

// close returns when the last letter was carried.
func (m *mail) close() { close(m.letters); m.carrier.Wait() }
