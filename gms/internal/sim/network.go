package sim

import "time"

// network knows which directed links are cut, and how bad the rest is.
type network struct {
	cut   map[[2]int]int // number of faults that cut the link
	walls map[[2]int]int // from, to: a firewall answers in to's name, and refuses
	lost  int            // one message in so many is lost; 0: none
	slow  time.Duration  // the longest that a message may take in bad times
}

const usual = 2 * time.Millisecond

func (w *world) open(from, to int) bool { return from == to || w.net.cut[[2]int{from, to}] == 0 }

// delay draws how long a message takes.
func (w *world) delay() time.Duration {
	if w.net.slow > 0 && w.chance(8) {
		return w.between(usual, w.net.slow)
	}
	return w.between(100*time.Microsecond, usual)
}

// send delivers to the process that lives at its arrival; nothing is said of what is lost.
func (w *world) send(from, to *node, deliver func()) {
	if from != to && w.net.lost > 0 && w.chance(w.net.lost) {
		return
	}
	if !w.open(from.id, to.id) {
		return
	}
	w.after(w.delay(), func() {
		if w.open(from.id, to.id) {
			to.run(deliver)
		}
	})
}

// remote is a service beside the nodes (ledger, storage, target): away for a while, or not. Requests and answers take
// random times; who asks while it is away is told so, and an answer may be lost.
type remote struct {
	w    *world
	away bool
}

// call sends a request of a process and brings the answer back to it. known false: whether it was carried out is unknown.
func (r *remote) call(n *node, request func(answer func(result)), then func(res result, known bool)) {
	w := r.w
	done := false
	back := n.guard(func(res result, known bool) {
		if !done {
			done = true
			then(res, known)
		}
	})
	lost := r.away || w.net.lost > 0 && w.chance(20)
	if r.away && w.chance(2) {
		w.after(w.between(usual, 200*time.Millisecond), func() { back(result{away: true}, true) })
		return
	}
	w.after(w.delay(), func() {
		request(func(res result) {
			if lost || r.away {
				return
			}
			w.after(w.delay(), func() { back(res, true) })
		})
	})
	w.after(4*time.Second, func() { back(result{}, false) })
}

// result is what a service answers.
type result struct {
	ok     bool
	away   bool   // nothing was done
	fenced bool   // refused under an old token
	state  stage  // of the row that was asked for
	token  uint64 // likewise
	copied uint64 // token of the copy that the row names
	void   bool   // a tombstone is there
	exists bool   // a manifest is there
}
