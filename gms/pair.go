package gms

import (
	"log/slog"
	"time"
)

// pairPatience is how long a group may have two members that can vote before it is said: others may be on their way.
const pairPatience = 10 * time.Second

// pairWarning says, once a term, that a group of two does not survive the loss of one (FIELD.md R28).
type pairWarning struct {
	since time.Duration // 0: there are not two
	said  bool
}

const pairIsNoMajority = "gms: two members cannot survive the loss of one: a third, or a witness, helps"

// look is called at each tick with the number of homes in the configuration.
func (p *pairWarning) look(servers int, now time.Duration, log *slog.Logger) {
	switch {
	case servers != 2:
		p.since = 0
	case p.since == 0:
		p.since = now
	case !p.said && now-p.since >= pairPatience:
		p.said = true
		log.Warn(pairIsNoMajority)
	}
}
