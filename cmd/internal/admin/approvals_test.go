package admin

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/approvals"
)

// second is what needs a second person.
type second map[string]time.Duration

func (s second) ApprovalsNeeded(context.Context) (map[string]time.Duration, error) { return s, nil }

// logged are the headers of a user who is logged in.
func logged(s accounts.Session) []string {
	return []string{"Cookie", cookiePlain + "=" + s.Cookie, api.HeaderFormToken, accounts.FormToken(s.Cookie)}
}

// person is a user of a role who is logged in, and a token of theirs.
func (s *site) person(t *testing.T, name string, role api.Role, approves bool) (in, token []string) {
	t.Helper()
	if _, err := s.accounts.AddUser(t.Context(), accounts.NewUser{Name: name, Role: role, Password: password}, "test"); err != nil {
		t.Fatal(err)
	}
	session, err := s.accounts.LogIn(t.Context(), name, password, "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	secret, _, err := s.accounts.AddToken(t.Context(), accounts.NewToken{Name: "own", User: name, Role: role, Approves: approves}, name)
	if err != nil {
		t.Fatal(err)
	}
	return logged(session), bearer(secret)
}

// waits has a request wait, and gives its id.
func (s *site) waits(t *testing.T, path, body string, who []string) string {
	t.Helper()
	var p api.Problem
	s.ask(t, "POST", api.Base+path, body, http.StatusConflict, &p, who...)
	if p.Code != api.CodeNeedsApproval || p.Approval == "" {
		t.Fatalf("%s: %+v", path, p)
	}
	return p.Approval
}

// decide approves or refuses, and wants that status.
func (s *site) decide(t *testing.T, id, verb, body string, want int, who []string) (a api.Approval) {
	t.Helper()
	var into any
	if want == http.StatusAccepted {
		into = &a
	}
	s.ask(t, "POST", api.ApprovalPath(id)+"/"+verb, body, want, into, who...)
	return a
}

// TestSecondPerson: what needs one waits until somebody else who may do the same approves it, and is then carried out, once,
// as it was asked and in the name of who has asked; the audit trail names both.
func TestSecondPerson(t *testing.T) {
	s := newSite(t, nil)
	s.h.Approvals = second{api.ApproveRestore: time.Hour}
	ann, annsToken := s.person(t, "ann", api.RoleOperator, true)
	bob, bobsToken := s.person(t, "bob", api.RoleOperator, false)
	_, approving := s.person(t, "carl", api.RoleOperator, true)
	viewer, _ := s.person(t, "eve", api.RoleViewer, true)

	s.ask(t, "POST", api.BackupPath("b1")+"/restore", `{"target":"copy"}`, http.StatusAccepted, nil, ann...) // it replaces nothing
	id := s.waits(t, "/backups/b1/restore", ` { "replace" : true, "target":"shop" } `, ann)
	for what, who := range map[string][]string{"who has asked": ann, "a token of who has asked": annsToken, "a token that does not approve": bobsToken, "a viewer": viewer} {
		s.decide(t, id, "approve", "", http.StatusForbidden, who)
		var a api.Approval
		if s.ask(t, "GET", api.ApprovalPath(id), "", http.StatusOK, &a, who...); a.WhyNot == "" || a.Mine != strings.Contains(what, "who has asked") {
			t.Errorf("%s sees %+v", what, a)
		}
	}
	s.decide(t, id, "refuse", `{}`, http.StatusForbidden, viewer)
	if n := len(s.fake.restored()); n != 1 {
		t.Fatalf("%d restores were planned", n)
	}
	var a api.Approval
	s.ask(t, "GET", api.ApprovalPath(id), "", http.StatusOK, &a, bob...)
	if a.WhyNot != "" || a.Mine || string(a.Request) != `{"replace":true,"target":"shop"}` || !strings.Contains(a.Text, "over database shop") {
		t.Errorf("who may approve it sees %+v", a)
	}
	if a = s.decide(t, id, "approve", "", http.StatusAccepted, bob); a.State != api.ApprovalDone || a.Task != "t10" || a.By != "ann" || a.DecidedBy != "bob" {
		t.Errorf("%+v", a)
	}
	got := s.fake.restored()
	if len(got) != 2 || got[1].Target != "shop" || !got[1].Replace || got[1].Backup != "b1" {
		t.Errorf("what was planned: %+v", got)
	}
	s.decide(t, id, "approve", "", http.StatusConflict, approving)
	if n := len(s.fake.restored()); n != 2 {
		t.Errorf("%d restores were planned", n)
	}

	list, err := s.trail.List(t.Context(), api.AuditFilter{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, r := range slices.Backward(list) {
		lines = append(lines, strings.TrimSpace(r.Actor+" "+r.Action+" "+r.Phase+" "+r.Approver))
	}
	for _, want := range []string{"ann approval.ask done", "ann restore.create asked bob", "ann restore.create done bob", "bob approval.approve done"} {
		if !slices.Contains(lines, want) {
			t.Errorf("the trail does not say %q: %q", want, lines)
		}
	}
	if c, err := s.trail.Check(t.Context()); err != nil || !c.Whole {
		t.Errorf("the trail: %+v, %v", c, err)
	}

	// By a token that approves, and refused by another.
	id = s.waits(t, "/backups/b2/restore", `{"in_place":true}`, bob)
	if a := s.decide(t, id, "approve", "", http.StatusAccepted, approving); a.State != api.ApprovalDone || a.DecidedVia != accounts.ViaToken {
		t.Errorf("%+v", a)
	}
	id = s.waits(t, "/backups/b3/restore", `{"in_place":true}`, bob)
	if a := s.decide(t, id, "refuse", `{"why":"not today"}`, http.StatusAccepted, ann); a.State != api.ApprovalRefused || a.Why != "not today" {
		t.Errorf("%+v", a)
	}
	s.decide(t, id, "approve", "", http.StatusConflict, ann)
	if n := len(s.fake.restored()); n != 3 {
		t.Errorf("%d restores were planned", n)
	}
}

// TestApprovedAsWhoTheyAre: who has asked must still be one who may, and an account that was changed since approves nothing.
func TestApprovedAsWhoTheyAre(t *testing.T) {
	s := newSite(t, nil)
	s.h.Approvals = second{api.ApproveDelete: time.Hour}
	ann, _ := s.person(t, "ann", api.RoleOperator, true)
	bob, _ := s.person(t, "bob", api.RoleOperator, true)
	id := s.waits(t, "/backups/b1/delete", ``, ann)
	role := func(r api.Role) {
		t.Helper()
		if _, err := s.accounts.SetUser(t.Context(), "ann", api.SetUser{Role: &r}); err != nil {
			t.Fatal(err)
		}
	}
	role(api.RoleViewer)
	s.decide(t, id, "approve", "", http.StatusForbidden, bob)
	role(api.RoleOperator)
	late, _ := s.person(t, "late", api.RoleAdmin, true)
	s.decide(t, id, "approve", "", http.StatusForbidden, late)
	if a := s.decide(t, id, "approve", "", http.StatusAccepted, bob); a.State != api.ApprovalDone || a.Task != "d1" {
		t.Errorf("%+v", a)
	}
}

// TestApprovedAndFailed: what does not come about is told, and not tried again.
func TestApprovedAndFailed(t *testing.T) {
	s := newSite(t, nil)
	s.h.Approvals = second{api.ApproveRestore: time.Hour}
	ann, _ := s.person(t, "ann", api.RoleOperator, true)
	bob, _ := s.person(t, "bob", api.RoleOperator, true)
	id := s.waits(t, "/backups/b1/restore", `{"replace":true}`, ann)
	s.fake.fail(&api.Error{Code: api.CodeConflict, Message: "the storage is full", Hint: "make room"})
	if a := s.decide(t, id, "approve", "", http.StatusAccepted, bob); a.State != api.ApprovalFailed || a.Problem != "the storage is full" || a.Hint != "make room" {
		t.Errorf("%+v", a)
	}
	s.fake.fail(nil)
	s.decide(t, id, "approve", "", http.StatusConflict, bob)
}

// TestApprovalsOfABoundUser: who is bound to a team's databases approves what is about these, and nothing else.
func TestApprovalsOfABoundUser(t *testing.T) {
	s := newSite(t, nil)
	s.h.Approvals = second{api.ApproveDelete: time.Hour}
	s.h.Backups = backupsOf{backends: s.h.Backups}
	s.h.Bindings = teams{map[string][]Bound{"tess": {{Labels: []string{"team-a"}, Source: true}}}, map[string][]string{"shop": {"team-a"}}}
	ann, _ := s.person(t, "ann", api.RoleOperator, true)
	tess, _ := s.person(t, "tess", api.RoleViewer, true)
	for backup, want := range map[string]int{"shop-1": http.StatusAccepted, "payroll-1": http.StatusForbidden} {
		s.decide(t, s.waits(t, "/backups/"+backup+"/delete", ``, ann), "approve", "", want, tess)
	}
}

// TestAskedWithAKey: a request with an idempotency key waits once, and a repeat is told of the same one.
func TestAskedWithAKey(t *testing.T) {
	s := newSite(t, nil)
	s.h.Approvals = second{api.ApproveDelete: time.Hour}
	ann, _ := s.person(t, "ann", api.RoleOperator, true)
	ann = append(ann, api.HeaderIdempotencyKey, "drawn")
	first := s.waits(t, "/backups/b1/delete", ``, ann)
	if again := s.waits(t, "/backups/b1/delete", ``, ann); again != first {
		t.Errorf("%s and %s", first, again)
	}
	if list, err := s.h.desk.List(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("%d wait: %v", len(list), err)
	}
}

// TestMalformedNeverWaits: what would be refused is refused when it is asked.
func TestMalformedNeverWaits(t *testing.T) {
	s := newSite(t, nil)
	s.h.Approvals = second{api.ApproveDelete: time.Hour, api.ApproveRestore: time.Hour}
	ann, _ := s.person(t, "ann", api.RoleOperator, true)
	for _, body := range []string{`{"now":true} {"now":true}`, `{"nobody_knows":1}`, `[`} {
		s.ask(t, "POST", api.BackupPath("b1")+"/delete", body, http.StatusBadRequest, nil, ann...)
	}
	s.ask(t, "POST", api.BackupPath("b1")+"/restore", `{"backup":"b2","replace":true}`, http.StatusBadRequest, nil, ann...)
	if list, err := s.h.desk.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%d wait: %v", len(list), err)
	}
}

// TestApprovingTokenIsOnesOwn: nobody makes a token that approves for somebody else, nor with one that does not.
func TestApprovingTokenIsOnesOwn(t *testing.T) {
	s := newSite(t, nil)
	admin, plain := s.person(t, "ann", api.RoleAdmin, false)
	_, approving := s.person(t, "carl", api.RoleAdmin, true)
	s.ask(t, "POST", api.PathTokens, `{"name":"a","role":"viewer","approves":true}`, http.StatusAccepted, nil, admin...)
	s.ask(t, "POST", api.PathTokens, `{"name":"b","role":"viewer","user":"carl","approves":true}`, http.StatusForbidden, nil, admin...)
	s.ask(t, "POST", api.PathTokens, `{"name":"c","role":"viewer","approves":true}`, http.StatusForbidden, nil, plain...)
	s.ask(t, "POST", api.PathTokens, `{"name":"d","role":"viewer","approves":true}`, http.StatusAccepted, nil, approving...)
}

// TestRoutesThatReplaceOrDelete: whatever changes storages' or databases' contents by a person's word says what it amounts
// to, or is listed here as what destroys nothing that counts.
func TestRoutesThatReplaceOrDelete(t *testing.T) {
	needs := map[string][]string{
		"backup.delete": {api.ApproveDelete}, "retention.confirm": {api.ApproveDelete}, "restore.create": {api.ApproveRestore}, "restore.undo": {api.ApproveRestore},
		"ledger.reconcile": {api.ApproveLedger}, "ledger.adopt": {api.ApproveLedger}, "ledger.init": {api.ApproveLedger}, "ledger.move": {api.ApproveLedger},
		"node.remove": {api.ApproveNode}, "node.forget": {api.ApproveNode}, "storage.check": {api.ApproveStorage},
		"settings.apply": ofSettingsNeeding, "setting.set": ofSettingsNeeding, "setting.remove": ofSettingsNeeding,
	}
	harmless := []string{"backup.create", "backup.undelete", "backup.mark", "backup.verify", "backup.replicate", "storage.test", "settings.plan", "restore.preview", "ledger.plan", "ledger.copy",
		"node.drain", "node.undrain", "node.replace"}
	for _, r := range newSite(t, nil).Routes() {
		about, _, _ := strings.Cut(r.Action, ".")
		if !r.Audited || !slices.Contains([]string{"backup", "restore", "retention", "storage", "settings", "setting", "ledger", "node"}, about) || slices.Contains(harmless, r.Action) {
			if r.weigh != nil && needs[r.Action] == nil {
				t.Errorf("%s is weighed, and not in the table", r.Action)
			}
			continue
		}
		if r.weigh == nil || !slices.Equal(r.operations, needs[r.Action]) {
			t.Errorf("%s: weighed %v, as %v, want %v", r.Action, r.weigh != nil, r.operations, needs[r.Action])
		}
	}
}

// TestLedgersAndNodes: decisions about the ledger, nodes that leave for good and what is removed from a storage wait, say what they
// are, and are carried out; what changes nothing of that does not wait.
func TestLedgersAndNodes(t *testing.T) {
	s := newSite(t, nil)
	s.h.Approvals = second{api.ApproveLedger: time.Hour, api.ApproveNode: time.Hour, api.ApproveStorage: time.Hour}
	ann, _ := s.person(t, "ann", api.RoleAdmin, true)
	bob, _ := s.person(t, "bob", api.RoleAdmin, true)
	for path, want := range map[string]struct{ body, text, action string }{
		"/ledger/reconcile":    {``, "have the ledger say what the storages hold", "ledger.reconcile"},
		"/ledger/adopt":        {``, "have the group use a ledger that is not its own", "ledger.adopt"},
		"/ledger/init":         {``, "begin a ledger", "ledger.init"},
		"/ledger/move":         {`{"to":"embedded"}`, "move the group's ledger to embedded", "ledger.move"},
		"/nodes/remove":        {`{"node":"n3"}`, "take node n3 out of the group for good", "node.remove"},
		"/nodes/forget":        {`{"node":"n3"}`, "have the group forget node n3", "node.forget"},
		"/storages/disk/check": {`{"fix":true}`, "remove from storage disk what nothing counts", "storage.check"},
	} {
		id := s.waits(t, path, want.body, ann)
		s.decide(t, id, "approve", "", http.StatusForbidden, ann)
		if a := s.decide(t, id, "approve", "", http.StatusAccepted, bob); a.State != api.ApprovalDone || !strings.HasPrefix(a.Text, want.text) || a.Action != want.action {
			t.Errorf("%s: %+v", path, a)
		}
	}
	s.ask(t, "POST", api.PathStorages+"/disk/check", `{}`, http.StatusAccepted, nil, ann...)
	s.ask(t, "POST", api.PathLedger+"/copy", `{"to":"env:DSN"}`, http.StatusAccepted, nil, ann...)
	for path, body := range map[string]string{"/ledger/move": `{}`, "/nodes/remove": `{}`, "/nodes/forget": `{}`} {
		s.ask(t, "POST", api.Base+path, body, http.StatusBadRequest, nil, ann...)
	}
	if list, err := s.h.desk.List(t.Context()); err != nil || slices.ContainsFunc(list, func(a approvals.Request) bool { return a.Waits() }) {
		t.Errorf("something waits: %v", err)
	}
	s.fake.fail(&api.Error{Code: api.CodeConflict, Message: "the ledger is in use"})
	s.ask(t, "POST", api.PathLedger+"/adopt", ``, http.StatusConflict, nil, ann...)
	if list, err := s.h.desk.List(t.Context()); err != nil || slices.ContainsFunc(list, func(a approvals.Request) bool { return a.Waits() }) {
		t.Errorf("what cannot be done waits: %v", err)
	}
}

// waiting has a request of another's wait, for tests that walk the routes.
func (s *site) waiting(t *testing.T) {
	t.Helper()
	a := approvals.Request{Approval: api.Approval{For: []string{api.ApproveDelete}, Text: "delete backup b1", Action: "backup.delete", Method: "POST", Path: api.Base + "/backups/b1/delete",
		By: "the-operator", Role: api.RoleOperator, Via: accounts.ViaSession}}
	made, err := s.h.desk.Ask(t.Context(), a, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	s.extra = made.ID
}
