package warden

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/recovery/home"
)

// state of the machine; the picture is in the package doc.
type state string

const (
	idle       state = "idle"
	recovering state = "recovering" // proof, cleaning, seal
	pausing    state = "pausing"    // back-off before a start
	starting   state = "starting"
	running    state = "running"
	burying    state = "burying"  // the node is dead: kill what is left of the run, prove the home empty
	roomless   state = "roomless" // the disk of the home is full: what did not fit is done again when there is room
	retiring   state = "retiring" // the node has left in order
	finished   state = "finished"
)

// Exit is how a node process ended.
type Exit struct {
	Code    int     // valid without Signal and Unknown
	Signal  string  // that ended it
	Unknown bool    // it was adopted, and only its parent learns more
	Parting Parting // what it said when it left its seat; empty when it did not leave
}

func (e Exit) String() string {
	switch {
	case e.Signal != "":
		return "killed by " + e.Signal
	case e.Unknown:
		return "ended, how is not known"
	}
	return fmt.Sprintf("ended with code %d", e.Code)
}

// clean: it ended because it wanted to.
func (e Exit) clean() bool {
	return e.Signal == "" && (e.Code == 0 && !e.Unknown || e.Unknown && e.Parting == InOrder)
}

// byItself: it said why in an exit code.
func (e Exit) byItself() bool { return e.Signal == "" && !e.Unknown }

// what happened
type (
	event     interface{}
	begun     struct{ adoptable bool }
	recovered struct{ err error }
	paused    struct{}
	started   struct{ err error }
	cameUp    struct{} // the first progress
	hung      struct{}
	ended     struct{ exit Exit }
	buried    struct{ err error }
	retired   struct{ err error }
	stopAsked struct{}
	roomy     struct{} // there is room on the disk of the home
	late      struct{} // a limit that an act has set is over: stacks written, or stopped
)

// what to do, in order
type (
	act      interface{}
	recoverA struct{ cause string } // → recovered
	adoptA   struct{}
	startA   struct{}                  // → started
	pauseA   struct{ d time.Duration } // → paused
	readyA   struct{}
	failA    struct{ cause string } // mark the home failed: everybody inside sees it
	tellA    struct{ what What }
	keepA    struct{ exit Exit } // evidence
	buryA    struct{}            // → buried
	retireA  struct{}            // → retired
	dumpA    struct{}            // → late
	termA    struct{}            // → late
	killA    struct{}            // → ended
	roomA    struct{ err error } // → roomy
)

// Outcome is how a warden ended. Code is an exit code: 0; the node's own; 1; 5 not proven stopped; 6 needs an operator.
type Outcome struct {
	Code int   // for os.Exit
	Err  error // nil when the code is the node's own, who has said why
}

// ErrNeedsOperator: the node died too often. The evidence is in the home.
var ErrNeedsOperator = errors.New("the node dies again and again and needs an operator")

// machine decides. It has no clock, process or file.
type machine struct {
	policy   Policy
	state    state
	deaths   []time.Duration // within the window
	up       bool            // this run has made progress
	wasUp    bool            // some run of this warden has
	stopping bool
	hanging  bool
	final    bool // no restart after what is going on
	exit     Exit
	again    act   // in state roomless: what did not fit
	noRoom   error // and why
	outcome  Outcome
}

// step takes what happened at a time of the warden's clock and says what to do.
func (m *machine) step(now time.Duration, e event) []act {
	switch e := e.(type) {
	case begun:
		return m.begin(e)
	case stopAsked:
		return m.stop()
	case recovered:
		return m.onRecovered(now, e.err)
	case paused:
		if m.state == pausing {
			return m.start()
		}
	case roomy:
		if m.state == roomless {
			return m.goOn()
		}
	case started:
		return m.onStarted(e.err)
	case cameUp:
		if m.state == running && !m.up {
			m.up, m.wasUp = true, true
			return []act{readyA{}}
		}
	case hung:
		if m.state == running && !m.hanging {
			m.hanging = true
			return []act{dumpA{}}
		}
	case late:
		if m.state == running && (m.hanging || m.stopping) {
			return []act{killA{}}
		}
	case ended:
		return m.onEnded(now, e.exit)
	case buried:
		return m.onBuried(e.err)
	case retired:
		if e.err != nil {
			return m.finish(5, e.err)
		}
		return m.finish(0, nil)
	}
	return nil
}

func (m *machine) begin(e begun) []act {
	if e.adoptable {
		m.state, m.wasUp = running, true
		return []act{adoptA{}}
	}
	m.state = recovering
	return []act{recoverA{"the warden came and found it open"}}
}

// stop: a node is asked, everything else ends where it is safe to.
func (m *machine) stop() []act {
	if m.stopping {
		return nil
	}
	m.stopping = true
	switch m.state {
	case running:
		return []act{termA{}}
	case pausing:
		return m.retire()
	case roomless:
		return m.giveUp()
	}
	return nil
}

// await waits for room to do again what did not fit. A full disk is no death: it is waited for as long as it takes, unless the
// node is to stop.
func (m *machine) await(err error, again act) []act {
	m.state, m.again, m.noRoom = roomless, again, err
	if m.stopping {
		return m.giveUp()
	}
	return []act{roomA{err}}
}

// giveUp ends without what did not fit: the next warden begins with it.
func (m *machine) giveUp() []act {
	if _, proof := m.again.(buryA); proof {
		return m.finish(5, m.noRoom)
	}
	return m.finish(1, m.noRoom)
}

func (m *machine) goOn() []act {
	switch m.again.(type) {
	case buryA:
		m.state = burying
	case recoverA:
		m.state = recovering
	case startA:
		m.state = starting
	}
	return []act{m.again}
}

func (m *machine) onRecovered(now time.Duration, err error) []act {
	switch {
	case errors.Is(err, home.ErrNotProven):
		return m.finish(5, err)
	case errors.Is(err, home.ErrNeedsOperator):
		return m.finish(6, err)
	case errors.Is(err, home.ErrNoRoom):
		return m.await(err, recoverA{"there was no room on its disk"})
	case err != nil && !m.wasUp:
		return m.finish(1, err)
	case err != nil:
		m.died(now)
		if m.spent() {
			return m.finish(6, fmt.Errorf("%w: %w", ErrNeedsOperator, err))
		}
		return []act{recoverA{"its recovery failed"}}
	case m.stopping:
		return m.retire()
	case len(m.deaths) > 0:
		m.state = pausing
		return []act{pauseA{m.policy.pause(len(m.deaths))}}
	}
	return m.start()
}

func (m *machine) start() []act {
	m.state, m.up, m.hanging = starting, false, false
	return []act{startA{}}
}

func (m *machine) onStarted(err error) []act {
	if errors.Is(err, home.ErrNoRoom) {
		return m.await(err, startA{})
	}
	if err != nil {
		return m.finish(1, err)
	}
	m.state = running
	if m.stopping {
		return []act{termA{}}
	}
	return nil
}

func (m *machine) onEnded(now time.Duration, exit Exit) []act {
	m.exit = exit
	if exit.clean() && !m.hanging {
		return m.retire()
	}
	m.died(now)
	// A node that never worked and says why in its exit code would say so again.
	m.final = m.stopping || exit.Parting == GaveUp || !m.wasUp && exit.byItself() && !m.hanging
	m.state = burying
	cause := "the node " + exit.String()
	if m.hanging {
		cause = "the node made no progress and was ended"
	}
	return []act{failA{cause}, tellA{Died}, keepA{exit}, buryA{}}
}

func (m *machine) onBuried(err error) []act {
	if errors.Is(err, home.ErrNeedsOperator) {
		return m.finish(6, err)
	}
	if errors.Is(err, home.ErrNoRoom) {
		return m.await(err, buryA{})
	}
	if err != nil {
		return m.finish(5, err)
	}
	tell := act(tellA{Quiesced})
	switch {
	case m.final || m.stopping:
		code := m.exit.Code
		if !m.exit.byItself() {
			code = 1
		}
		return append([]act{tell}, m.finish(code, nil)...)
	case m.spent():
		return append([]act{tell}, m.finish(6, fmt.Errorf("%w: %d deaths in %v, the last: %v", ErrNeedsOperator, len(m.deaths), m.policy.Window, m.exit))...)
	}
	m.state = recovering
	return []act{tell, recoverA{""}}
}

func (m *machine) retire() []act {
	m.state = retiring
	return []act{retireA{}}
}

func (m *machine) finish(code int, err error) []act {
	m.state, m.outcome = finished, Outcome{code, err}
	return nil
}

// died counts a death and forgets those before the window.
func (m *machine) died(now time.Duration) {
	m.deaths = slices.DeleteFunc(m.deaths, func(at time.Duration) bool { return now-at > m.policy.Window })
	m.deaths = append(m.deaths, now)
}

func (m *machine) spent() bool { return len(m.deaths) > max(m.policy.Restarts, 0) }
