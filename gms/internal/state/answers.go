package state

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// Bounds of the table of answers. A client that keeps fewer than MaxAnswers requests between the oldest one whose answer
// it has not seen and the newest never meets the first one.
const (
	MaxAnswers = 4096 // kept per client; the oldest are given up as if acknowledged
	MaxClients = 1024 // kept; those without an open run go first, then the longest unused
)

// answerTable remembers what clients were answered until they have seen it (PROTOCOL.md 21).
//
// A late repeat of a request that is no longer in the table does no harm. Below the acknowledged number it is refused as
// stale. Of a closed run it is refused because its run is not open (PROTOCOL.md 2), an OpenRun because the group knows
// another last run (PROTOCOL.md 1); so a closed run's clients are forgotten with it. What the leader and operators send
// names what it is about by run, token, appointment or number and finds it ended.
type answerTable struct {
	clients map[string]*client
	byRun   map[RunID]map[string]bool
}

type client struct {
	run      RunID
	acked    uint64
	lastUsed uint64
	answers  []*wire.Answer // by seq
}

func newAnswerTable() answerTable {
	return answerTable{clients: map[string]*client{}, byRun: map[RunID]map[string]bool{}}
}

func bySeq(a *wire.Answer, seq uint64) int { return cmp.Compare(a.GetSeq(), seq) }

// find returns the answer to a repeated command; known and nil when it is forgotten.
func (t *answerTable) find(c *wire.Command) (answer *wire.Result, known bool) {
	cl, ok := t.clients[string(c.GetClient())]
	if !ok || len(c.GetClient()) == 0 {
		return nil, false
	}
	if at, found := slices.BinarySearchFunc(cl.answers, c.GetSeq(), bySeq); found {
		return cl.answers[at].GetResult(), true
	}
	return nil, c.GetSeq() <= cl.acked
}

// remember keeps the answer to a command. A client belongs to the run that used it last; one that opens a run to that.
// What a run that is not open sends leaves no trace, not even here (PROTOCOL.md, invariant 5): neither the refusal of
// its opening nor its own end, which a repeat finds.
func (m *Machine) remember(run RunID, c *wire.Command, result *wire.Result) {
	if len(c.GetClient()) == 0 || !run.IsZero() && !m.runs.isOpen(run) {
		return
	}
	if op, ok := c.GetOp().(*wire.Command_OpenRun); ok {
		if opened, _ := RunIDOf(op.OpenRun.GetRun()); m.runs.isOpen(opened) {
			run = opened
		}
	}
	m.answers.add(run, c, result, m.Position())
	m.evictClients()
}

func (t *answerTable) add(run RunID, c *wire.Command, result *wire.Result, position uint64) {
	id := string(c.GetClient())
	cl, ok := t.clients[id]
	if !ok {
		cl = &client{}
		t.clients[id] = cl
	}
	if !run.IsZero() {
		t.bind(id, cl, run)
	}
	cl.lastUsed = position
	at, _ := slices.BinarySearchFunc(cl.answers, c.GetSeq(), bySeq)
	cl.answers = slices.Insert(cl.answers, at, &wire.Answer{Seq: c.GetSeq(), Result: result})
	cl.forget(c.GetAcked())
	if n := len(cl.answers) - MaxAnswers; n > 0 {
		cl.forget(cl.answers[n-1].GetSeq())
	}
}

// forget drops the answers up to acked.
func (c *client) forget(acked uint64) {
	if acked <= c.acked {
		return
	}
	c.acked = acked
	n, found := slices.BinarySearchFunc(c.answers, acked, bySeq)
	if found {
		n++
	}
	c.answers = c.answers[n:]
}

func (t *answerTable) bind(id string, c *client, run RunID) {
	if c.run == run {
		return
	}
	t.unbind(id, c)
	c.run = run
	if t.byRun[run] == nil {
		t.byRun[run] = map[string]bool{}
	}
	t.byRun[run][id] = true
}

func (t *answerTable) unbind(id string, c *client) {
	delete(t.byRun[c.run], id)
	if len(t.byRun[c.run]) == 0 {
		delete(t.byRun, c.run)
	}
}

// forgetRun drops the clients of a closed run.
func (t *answerTable) forgetRun(run RunID) {
	for id := range t.byRun[run] {
		delete(t.clients, id)
	}
	delete(t.byRun, run)
}

// evictClients drops an eighth of the clients when there are too many.
func (m *Machine) evictClients() {
	t := &m.answers
	if len(t.clients) <= MaxClients {
		return
	}
	ids := make([]string, 0, len(t.clients))
	for id := range t.clients {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int {
		ca, cb := t.clients[a], t.clients[b]
		if ca.run.IsZero() != cb.run.IsZero() {
			if ca.run.IsZero() {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(ca.lastUsed, cb.lastUsed), cmp.Compare(a, b))
	})
	for _, id := range ids[:MaxClients/8] {
		t.unbind(id, t.clients[id])
		delete(t.clients, id)
	}
}

// snapshot lists the clients by id; answers are never changed once they are given.
func (t *answerTable) snapshot() []*wire.Client {
	list := make([]*wire.Client, 0, len(t.clients))
	for id, c := range t.clients {
		list = append(list, &wire.Client{
			Id: []byte(id), Acked: c.acked, LastUsed: c.lastUsed, Run: c.run.Bytes(), Answers: slices.Clone(c.answers),
		})
	}
	slices.SortFunc(list, func(a, b *wire.Client) int { return cmp.Compare(string(a.GetId()), string(b.GetId())) })
	return list
}

func (t *answerTable) restore(c *wire.Client) {
	cl := &client{acked: c.GetAcked(), lastUsed: c.GetLastUsed()}
	for _, a := range c.GetAnswers() {
		cl.answers = append(cl.answers, proto.CloneOf(a))
	}
	t.clients[string(c.GetId())] = cl
	if run, ok := RunIDOf(c.GetRun()); ok {
		t.bind(string(c.GetId()), cl, run)
	}
}
