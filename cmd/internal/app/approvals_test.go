package app

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
)

// needsApproval wants an error that says that a request waits, and gives its id.
func needsApproval(t *testing.T, what string, err error) string {
	t.Helper()
	var e *api.Error
	if !errors.As(err, &e) || e.Code != api.CodeNeedsApproval || e.Approval == "" {
		t.Fatalf("%s: %v", what, err)
	}
	return e.Approval
}

// TestSecondPersonOfANode: what the group's settings say takes a second person waits in the group's own state, is an alarm
// meanwhile, and is carried out when somebody else approves it; the rules themselves take one, too; and what was to prune
// settings is not carried out on others than were looked at.
func TestSecondPersonOfANode(t *testing.T) {
	c := config(t)
	c.Admin.Bind = freeAddr(t)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	node, _ := start(t, c)
	ready(t, node)
	socket := api.NewClient(c.Admin.Socket)
	defer socket.Close()
	ctx := t.Context()
	as := map[string]*api.Client{}
	for _, name := range []string{"ann", "bob"} {
		if _, err := socket.AddUser(ctx, api.AddUser{Name: name, Role: api.RoleAdmin, Password: "correct horse battery"}); err != nil {
			t.Fatal(err)
		}
		secret, _, err := node.accounts.AddToken(ctx, accounts.NewToken{Name: "own", User: name, Role: api.RoleAdmin, Approves: true}, name)
		if err != nil {
			t.Fatal(err)
		}
		if as[name], err = api.NewRemote(api.Remote{URL: "http://" + c.Admin.Bind, Token: secret}); err != nil {
			t.Fatal(err)
		}
		defer as[name].Close()
	}
	disk := func(path string) api.Setting {
		return api.Setting{Kind: "storage", Name: "disk", Spec: json.RawMessage(`{"name":"disk","kind":"local","path":"` + c.Home + path + `"}`)}
	}
	rules := api.Setting{Kind: "approval", Name: "storage", Spec: json.RawMessage(`{"name":"storage","within":"2h"}`)}
	if _, err := socket.ApplySettings(ctx, api.ApplySettings{Settings: []api.Setting{disk("1"), rules}}); err != nil {
		t.Fatal("before there were rules:", err)
	}

	_, err := socket.SetSetting(ctx, disk("2"))
	id := needsApproval(t, "a storage that is changed", err)
	_, err = as["bob"].RemoveSetting(ctx, "approval", "storage")
	rule := needsApproval(t, "the rule that is removed", err)
	_, err = as["ann"].ApplySettings(ctx, api.ApplySettings{Settings: []api.Setting{rules}, Prune: true})
	prune := needsApproval(t, "settings that are pruned", err)
	if alarms := node.approvalAlarms(); len(alarms) != 3 || !slices.ContainsFunc(alarms, func(a api.Alarm) bool {
		return a.About == id && strings.Contains(a.Text, "asks to change storage disk (path)") && a.Since != nil
	}) {
		t.Errorf("the alarms: %+v", alarms)
	}
	if a, err := as["ann"].Approval(ctx, id); err != nil || !slices.Equal(a.For, []string{api.ApproveStorage}) || a.Expires.Sub(a.Created) != 2*time.Hour || a.WhyNot != "" {
		t.Errorf("%+v, %v", a, err)
	}
	var refused *api.Error
	if _, err := socket.Approve(ctx, id); !errors.As(err, &refused) || refused.Code != api.CodeForbidden {
		t.Errorf("over the socket: %v", err)
	}
	if a, err := as["ann"].Approve(ctx, id); err != nil || a.State != api.ApprovalDone {
		t.Errorf("%+v, %v", a, err)
	}
	all, err := socket.Settings(ctx)
	if err != nil || !slices.ContainsFunc(all.Settings, func(s api.Setting) bool { return s.Name == "disk" && strings.Contains(string(s.Spec), c.Home+"2") }) {
		t.Errorf("the settings: %s, %v", all.Settings, err)
	}
	if a, err := as["bob"].Approve(ctx, prune); err != nil || a.State != api.ApprovalFailed || !strings.Contains(a.Problem, "somebody has changed them") {
		t.Errorf("what was to prune others: %+v, %v", a, err)
	}
	if _, err := as["bob"].Approve(ctx, rule); !errors.As(err, &refused) || refused.Code != api.CodeForbidden {
		t.Errorf("one's own: %v", err)
	}
	if a, err := as["ann"].Approve(ctx, rule); err != nil || a.State != api.ApprovalDone {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := socket.SetSetting(ctx, disk("3")); err != nil {
		t.Errorf("without rules: %v", err)
	}
	if alarms := node.approvalAlarms(); len(alarms) != 0 {
		t.Errorf("the alarms: %+v", alarms)
	}
	if check, err := socket.CheckAudit(ctx); err != nil || !check.Whole {
		t.Errorf("the trail: %+v, %v", check, err)
	}
}
