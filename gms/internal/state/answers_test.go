package state

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// request is a command with a request number.
func request(client string, seq, acked uint64, run RunID, op proto.Message) *wire.Command {
	c := command(run, op)
	c.Client, c.Seq, c.Acked = id16(client), seq, acked
	return c
}

func TestRule21_ARepeatIsAnsweredIdenticallyAndChangesNothing(t *testing.T) {
	r := newRig(t)
	a, b := r.open("A1"), r.open("B1")
	requests := []*wire.Command{
		request("a", 1, 0, a, &wire.Claim{Component: "backup", Item: "one"}),
		request("a", 2, 0, a, &wire.Lock{Name: "l"}),
		request("b", 1, 0, b, &wire.Claim{Component: "backup", Item: "one"}), // refused
		request("b", 2, 0, b, &wire.Lock{Name: "l", Wait: true}),             // queued
		request("b", 3, 0, b, &wire.CacheTxn{Puts: []*wire.CachePut{put("k", "v")}}),
		request("o", 1, 0, RunID{}, &wire.ChangeSettings{Settings: &wire.Settings{MaxAttempts: 7}}),
	}
	var answers []*wire.Result
	for _, c := range requests {
		answers = append(answers, r.apply(c)[0])
	}
	// What would be answered otherwise by now, is not.
	r.ok(a, &wire.EndClaim{Component: "backup", Item: "one", Token: answers[0].GetToken(), How: wire.EndClaim_HOW_COMPLETE})
	r.ok(a, &wire.Unlock{Name: "l", Token: answers[1].GetToken()})
	r.ok(RunID{}, &wire.ChangeSettings{Settings: &wire.Settings{MaxAttempts: 8}})
	was := content(t, r.m, true)
	for i, c := range requests {
		if got := r.apply(c)[0]; !proto.Equal(got, answers[i]) {
			t.Errorf("request %d: the repeat is answered %v, first %v", i, got, answers[i])
		}
		if content(t, r.m, true) != was || len(r.changes) > 0 {
			t.Errorf("request %d: the repeat has changed the state", i)
		}
	}
}

func TestRule21_AnswersAreKeptUntilTheyAreAcknowledged(t *testing.T) {
	r := newRig(t)
	a := r.open("A1")
	claim := func(seq, acked uint64) *wire.Result {
		return r.apply(request("a", seq, acked, a, &wire.Claim{Component: "backup", Item: fmt.Sprint(seq)}))[0]
	}
	first, second := claim(1, 0), claim(2, 0)
	claim(4, 1)
	if got := claim(2, 0); !proto.Equal(got, second) {
		t.Errorf("the unacknowledged answer is %v, was %v", got, second)
	}
	was := content(t, r.m, true)
	if got := claim(1, 0); got.GetCode() != wire.Code_CODE_STALE || content(t, r.m, true) != was {
		t.Errorf("the acknowledged request is answered %v, was %v", got, first)
	}
	if got := claim(3, 1); got.GetCode() != wire.Code_CODE_OK {
		t.Errorf("a request that was overtaken is answered %v", got)
	}
	claim(5, 4)
	if n := len(r.m.answers.clients[string(id16("a"))].answers); n != 1 {
		t.Errorf("%d answers are kept, want the last one", n)
	}
}

func TestRule21_AClientIsForgottenWithItsRun(t *testing.T) {
	r := newRig(t)
	open := opening(r, "A", "A1")
	r.apply(request("a", 1, 0, RunID{}, open))
	a := runID("A1")
	claim := request("a", 2, 0, a, &wire.Claim{Component: "backup", Item: "one"})
	r.apply(claim)
	r.apply(request("other", 1, 0, RunID{}, closingOf("A1", wire.Evidence_EVIDENCE_REFUSED)))
	if len(r.m.answers.clients) != 1 || len(r.m.answers.byRun) != 0 {
		t.Errorf("after the closing %d clients are kept", len(r.m.answers.clients))
	}
	was := content(t, r.m, true)
	if got := r.apply(claim)[0]; got.GetCode() != wire.Code_CODE_RUN_NOT_OPEN || content(t, r.m, true) != was {
		t.Errorf("the late repeat of the claim: %v", got)
	}
	was = r.content()
	if got := r.apply(request("a", 1, 0, RunID{}, open))[0]; got.GetCode() != wire.Code_CODE_STALE || r.content() != was {
		t.Errorf("the late repeat of the opening: %v", got)
	}
}

func TestTheTableOfAnswersIsBounded(t *testing.T) {
	r := newRig(t)
	a := r.open("A1")
	apply := func(c *wire.Command) *wire.Result {
		results, _ := r.m.Apply(r.m.Index()+1, entry(c))
		return results[0]
	}
	apply(request("a", 1, 0, a, &wire.SetReady{Ready: true})) // the longest unused, but of an open run
	for seq := uint64(1); seq <= MaxAnswers+1; seq++ {
		apply(request("many", seq, 0, a, &wire.Lock{Name: "l"}))
	}
	if n := len(r.m.answers.clients[string(id16("many"))].answers); n != MaxAnswers {
		t.Errorf("%d answers are kept", n)
	}
	if got := apply(request("many", 1, 0, a, &wire.Lock{Name: "l"})); got.GetCode() != wire.Code_CODE_STALE {
		t.Errorf("a request whose answer was given up: %v", got)
	}
	for i := range 2 * MaxClients {
		apply(request(fmt.Sprint("idle ", i), 1, 0, RunID{}, &wire.SetReady{}))
	}
	if n := len(r.m.answers.clients); n > MaxClients {
		t.Errorf("%d clients are kept", n)
	}
	for _, name := range []string{"a", "many", fmt.Sprint("idle ", 2*MaxClients-1)} {
		if r.m.answers.clients[string(id16(name))] == nil {
			t.Errorf("client %q was dropped", name)
		}
	}
	if r.m.answers.clients[string(id16("idle 0"))] != nil {
		t.Error("the longest unused client is kept")
	}
}
