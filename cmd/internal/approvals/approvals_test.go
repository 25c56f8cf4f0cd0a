package approvals

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/kept"
)

var start = time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)

// desk is one whose clock the test moves.
func desk() (d *Desk, clock *time.Time, store *kept.Memory) {
	now, store := start, &kept.Memory{}
	return New(store, func() time.Time { return now }), &now, store
}

// deletion is what somebody asks for.
func deletion(by, id string) Request {
	return Request{Approval: api.Approval{
		For: []string{api.ApproveDelete}, Text: "delete backup " + id, Action: "backup.delete", Target: id, Method: "POST", Path: "/api/v1/backups/" + id + "/delete",
		Request: []byte(`{"now":true}`), By: by, Role: api.RoleOperator, Via: accounts.ViaSession,
	}}
}

func code(err error) api.Code {
	var e *api.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

var bob = accounts.Actor{Name: "bob", Role: api.RoleOperator, Via: accounts.ViaSession, Approves: true}

// TestLifeOfARequest: it waits as it was asked, is decided once, and what became of it stays with it.
func TestLifeOfARequest(t *testing.T) {
	d, clock, _ := desk()
	a, err := d.Ask(t.Context(), deletion("ann", "b1"), time.Hour)
	if err != nil || !a.Waits() || !a.Expires.Equal(start.Add(time.Hour)) {
		t.Fatal(a, err)
	}
	if again, err := d.Ask(t.Context(), deletion("ann", "b1"), time.Hour); err != nil || again.ID != a.ID {
		t.Error("the same once more is another one:", again.ID, err)
	}
	if other, err := d.Ask(t.Context(), deletion("eve", "b1"), time.Hour); err != nil || other.ID == a.ID {
		t.Error("another's is the same:", other.ID, err)
	}
	*clock = start.Add(time.Minute)
	a, err = d.Approve(t.Context(), a.ID, bob)
	if err != nil || a.State != api.ApprovalApproved || a.DecidedBy != "bob" || string(a.Request) != `{"now":true}` {
		t.Fatal(a, err)
	}
	for what, try := range map[string]func() (Request, error){
		"approved": func() (Request, error) { return d.Approve(t.Context(), a.ID, bob) },
		"refused":  func() (Request, error) { return d.Refuse(t.Context(), a.ID, bob, "") },
	} {
		if _, err := try(); code(err) != api.CodeConflict {
			t.Errorf("it is %s a second time: %v", what, err)
		}
	}
	if _, err = d.End(t.Context(), a.ID, Outcome{Task: "t1", Answer: []byte(`{"id":"t1"}`)}); err != nil {
		t.Fatal(err)
	}
	got, err := d.Get(t.Context(), a.ID)
	if err != nil || got.State != api.ApprovalDone || got.Task != "t1" || got.DecidedBy != "bob" || got.By != "ann" {
		t.Error(got, err)
	}
}

// TestOneDecisionCounts: of many who decide at the same time one is heard, the others are told who.
func TestOneDecisionCounts(t *testing.T) {
	d, _, _ := desk()
	a, err := d.Ask(t.Context(), deletion("ann", "b1"), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	results := make([]error, 8)
	for i := range results {
		wg.Go(func() {
			if who := (accounts.Actor{Name: fmt.Sprintf("u%d", i)}); i%2 == 0 {
				_, results[i] = d.Approve(t.Context(), a.ID, who)
			} else {
				_, results[i] = d.Refuse(t.Context(), a.ID, who, "no")
			}
		})
	}
	wg.Wait()
	heard := 0
	for _, err := range results {
		switch code(err) {
		case "":
			heard++
		case api.CodeConflict:
		default:
			t.Error(err)
		}
	}
	if heard != 1 {
		t.Errorf("%d decisions counted", heard)
	}
}

// TestExpired: when nobody has decided in time nobody can any more, without anybody having written that.
func TestExpired(t *testing.T) {
	d, clock, _ := desk()
	a, err := d.Ask(t.Context(), deletion("ann", "b1"), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	*clock = start.Add(time.Hour)
	if got, err := d.Get(t.Context(), a.ID); err != nil || got.State != api.ApprovalExpired {
		t.Error(got.State, err)
	}
	if _, err := d.Approve(t.Context(), a.ID, bob); code(err) != api.CodeConflict || !strings.Contains(err.Error(), "expired") {
		t.Error(err)
	}
	if again, err := d.Ask(t.Context(), deletion("ann", "b1"), time.Hour); err != nil || again.ID == a.ID {
		t.Error("it is the expired one:", err)
	}
}

// TestWithdrawn: who has asked refuses their own as a withdrawal, whatever they come with.
func TestWithdrawn(t *testing.T) {
	d, _, _ := desk()
	for who, want := range map[string]string{"ann": api.ApprovalWithdrawn, "local:ann": api.ApprovalWithdrawn, "bob": api.ApprovalRefused} {
		a, err := d.Ask(t.Context(), deletion("ann", "of-"+who), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if a, err = d.Refuse(t.Context(), a.ID, accounts.Actor{Name: who}, "later"); err != nil || a.State != want || a.Why != "later" {
			t.Error(who, a.State, err)
		}
	}
}

// TestBounds: requests are as long as they may be and as many as can wait; those that ended go after a week.
func TestBounds(t *testing.T) {
	d, clock, store := desk()
	long := deletion("ann", "b1")
	long.Request = []byte(`"` + strings.Repeat("x", MaxRequest) + `"`)
	if _, err := d.Ask(t.Context(), long, time.Hour); code(err) != api.CodeTooLarge {
		t.Error(err)
	}
	for i := range mostWaiting {
		if _, err := d.Ask(t.Context(), deletion("ann", fmt.Sprint(i)), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Ask(t.Context(), deletion("ann", "more"), time.Hour); code(err) != api.CodeTooMany {
		t.Error(err)
	}
	*clock = start.Add(time.Hour + keepEnded)
	if _, err := d.Ask(t.Context(), deletion("ann", "more"), time.Hour); err != nil {
		t.Fatal(err)
	}
	if left, err := store.List(t.Context(), Prefix); err != nil || len(left) != 1 {
		t.Errorf("%d are left: %v", len(left), err)
	}
	if _, err := d.Get(t.Context(), "nobody"); code(err) != api.CodeNotFound {
		t.Error(err)
	}
}

// TestWhoMayApprove is the rule of the second person.
func TestWhoMayApprove(t *testing.T) {
	a := deletion("ann", "b1")
	a.State, a.Created = api.ApprovalWaiting, start
	older := api.User{Name: "x", Changed: start.Add(-time.Hour)}
	for what, x := range map[string]struct {
		by      accounts.Actor
		account api.User
		want    string
	}{
		"somebody else, logged in":        {bob, older, ""},
		"their token that approves":       {accounts.Actor{Name: "bob", Via: accounts.ViaToken, Approves: true}, older, ""},
		"a token that does not":           {accounts.Actor{Name: "bob", Via: accounts.ViaToken}, older, "this token does not approve"},
		"who has asked":                   {accounts.Actor{Name: "ann", Via: accounts.ViaSession, Session: "another", Approves: true}, older, "second person"},
		"a token of who has asked":        {accounts.Actor{Name: "ann", Via: accounts.ViaToken, Token: "t", Approves: true}, older, "second person"},
		"the socket":                      {accounts.Actor{Name: "local:bob", Role: api.RoleAdmin, Via: accounts.ViaSocket}, api.User{}, "over the socket nobody approves"},
		"an account that was made since":  {bob, api.User{Name: "bob", Created: start.Add(time.Second), Changed: start.Add(time.Second)}, "after this was asked for"},
		"one whose password was replaced": {bob, api.User{Name: "bob", Created: start.Add(-time.Hour), Changed: start.Add(time.Second)}, "after this was asked for"},
	} {
		err := May(a, x.by, x.account)
		if (err == nil) != (x.want == "") || err != nil && (code(err) != api.CodeForbidden || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	a.By = "local:bob"
	if err := May(a, bob, older); err == nil {
		t.Error("who has asked at the socket under their name approves it")
	}
	a.State, a.DecidedBy = api.ApprovalDone, "eve"
	if err := May(a, bob, older); code(err) != api.CodeConflict || !strings.Contains(err.Error(), "done, by eve") {
		t.Error(err)
	}
}

// TestNeeded: what is set counts, the shortest time of what is needed, and the rules themselves whenever there are any.
func TestNeeded(t *testing.T) {
	set := map[string]time.Duration{api.ApproveDelete: time.Hour, api.ApproveStorage: time.Minute}
	for _, x := range []struct {
		set        map[string]time.Duration
		operations []string
		want       []string
		within     time.Duration
	}{
		{set, []string{api.ApproveDelete}, []string{api.ApproveDelete}, time.Hour},
		{set, []string{api.ApproveRestore}, nil, 0},
		{set, []string{api.ApproveDelete, api.ApproveStorage, api.ApproveDelete}, []string{api.ApproveDelete, api.ApproveStorage}, time.Minute},
		{set, []string{api.ApproveRules}, []string{api.ApproveRules}, time.Minute},
		{nil, []string{api.ApproveRules, api.ApproveDelete}, nil, 0},
		{set, nil, nil, 0},
	} {
		if got, within := Needed(x.set, x.operations); !slices.Equal(got, x.want) || within != x.within {
			t.Errorf("%v of %v: %v within %s", x.operations, x.set, got, within)
		}
	}
}

// TestOfSettings: which changes of settings are one of the operations.
func TestOfSettings(t *testing.T) {
	for _, x := range []struct {
		change api.SettingChange
		want   []string
	}{
		{api.SettingChange{Kind: "storage", Change: api.SettingAdded}, []string{api.ApproveStorage}},
		{api.SettingChange{Kind: "storage", Change: api.SettingRemoved}, []string{api.ApproveStorage}},
		{api.SettingChange{Kind: "approval", Change: api.SettingRemoved}, []string{api.ApproveRules}},
		{api.SettingChange{Kind: "retention", Change: api.SettingAdded}, []string{api.ApproveDelete}},
		{api.SettingChange{Kind: "retention", Change: api.SettingRemoved}, nil},
		{api.SettingChange{Kind: "server", Change: api.SettingChanged, Keys: []string{"rpo", "retention"}}, []string{api.ApproveDelete}},
		{api.SettingChange{Kind: "server", Change: api.SettingChanged, Keys: []string{"rpo"}}, nil},
		{api.SettingChange{Kind: "schedule", Change: api.SettingRemoved}, nil},
	} {
		if got := OfSettings([]api.SettingChange{x.change, x.change}); !slices.Equal(got, x.want) {
			t.Errorf("%+v: %v", x.change, got)
		}
	}
}
