package admin

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/approvals"
)

// ofSettingsNeeding are the operations that a change of settings can be.
var ofSettingsNeeding = []string{api.ApproveStorage, api.ApproveDelete, api.ApproveRules}

func (h *handler) weighDelete(r *http.Request, want api.DeleteBackup) (deed, error) {
	b, err := h.Backups.Backup(r.Context(), r.PathValue("id"))
	if err != nil {
		return deed{}, err
	}
	d := deed{operations: []string{api.ApproveDelete}, text: "delete backup " + b.ID + " of " + b.Database}
	if want.Now {
		d.text += " at once, so that it cannot be taken back"
	}
	return d, nil
}

func (h *handler) weighConfirm(r *http.Request, _ struct{}) (deed, error) {
	p, err := h.Recurring.Prune(r.Context(), r.PathValue("database"))
	if err != nil {
		return deed{}, err
	}
	goes := 0
	for _, x := range p.Decisions {
		if x.Action == "remove" {
			goes++
		}
	}
	return deed{operations: []string{api.ApproveDelete}, text: fmt.Sprintf("let retention remove %d of %d backups of %s at once", goes, len(p.Decisions), p.Database)}, nil
}

// weighRestore: what may replace something needs it, whether there is something now or not: there may be when it is done.
func (h *handler) weighRestore(r *http.Request, want api.RestoreBackup) (deed, error) {
	if !want.Replace && !want.InPlace {
		return deed{}, nil
	}
	want, err := restoreOf(r, want)
	if err != nil {
		return deed{}, err
	}
	p, err := h.Requests.PreviewRestore(r.Context(), want)
	if err != nil {
		return deed{}, err
	}
	how := "over"
	if want.InPlace {
		how = "in place, without an undo, into"
	}
	return deed{operations: []string{api.ApproveRestore}, text: fmt.Sprintf("restore backup %s of %s %s database %s on the server of %s", p.Backup.ID, p.Backup.Database, how, p.Target, p.Database)}, nil
}

func (h *handler) weighUndo(r *http.Request, _ struct{}) (deed, error) {
	t, err := h.Tasks.Task(r.Context(), r.PathValue("id"))
	return deed{operations: []string{api.ApproveRestore}, text: fmt.Sprintf("give database %s back to what was there before the restore %s", t.Target, t.ID)}, err
}

// weighApply: with prune what goes depends on what is there, so that the very version that was looked at is kept with it.
func (h *handler) weighApply(r *http.Request, want api.ApplySettings) (deed, error) {
	d, version, err := h.weighSettings(r, want)
	if want.Prune && want.Version == 0 {
		want.Version = version
		d.request = want
	}
	return d, err
}

func (h *handler) weighSetting(r *http.Request, want api.SetSetting) (deed, error) {
	d, _, err := h.weighSettings(r, settingOf(r, want))
	return d, err
}

func (h *handler) weighRemoval(r *http.Request, _ struct{}) (deed, error) {
	all, err := h.Settings.Settings(r.Context())
	if err != nil {
		return deed{}, err
	}
	kind, name := r.PathValue("kind"), r.PathValue("name")
	rest := slices.DeleteFunc(slices.Clone(all.Settings), func(s api.Setting) bool { return s.Kind == kind && s.Name == name })
	d, _, err := h.weighSettings(r, api.ApplySettings{Settings: rest, Prune: true, Version: all.Version})
	return d, err
}

// weighSettings is what a change of settings amounts to, and the version of those that it would change.
func (h *handler) weighSettings(r *http.Request, want api.ApplySettings) (deed, uint64, error) {
	p, err := h.Settings.PlanSettings(r.Context(), want)
	return deed{operations: approvals.OfSettings(p.Changes), text: changesInWords(p.Changes)}, p.Version, err
}

// changesInWords is a sentence's end: change storage cloud, remove schedule nightly and 3 more changes.
func changesInWords(changes []api.SettingChange) string {
	const most = 6
	var parts []string
	for _, c := range changes[:min(len(changes), most)] {
		part := c.Change + " " + c.Kind + " " + c.Name
		if len(c.Keys) > 0 {
			part += " (" + strings.Join(c.Keys, ", ") + ")"
		}
		parts = append(parts, part)
	}
	text := strings.Join(parts, ", ")
	if more := len(changes) - most; more > 0 {
		text += fmt.Sprintf(" and %d more changes", more)
	}
	return text
}

// weighLedger: what a decision about the ledger would change is found out, so that none waits that could not be made now.
func (h *handler) weighLedger(do string) func(*http.Request, struct{}) (deed, error) {
	return func(r *http.Request, _ struct{}) (deed, error) {
		p, err := h.Ledgers.PlanLedger(r.Context(), do)
		words := map[string]string{
			api.LedgerReconcile: "have the ledger say what the storages hold, and open it again", api.LedgerAdopt: "have the group use a ledger that is not its own",
			api.LedgerInit: "begin a ledger with what the storages hold",
		}
		return deed{operations: []string{api.ApproveLedger}, text: fmt.Sprintf("%s: it changes %d entries of backups and %d of tasks", words[do], len(p.Backups), len(p.Tasks))}, err
	}
}

func (h *handler) weighMove(_ *http.Request, want api.MoveLedger) (deed, error) {
	return deed{operations: []string{api.ApproveLedger}, text: "move the group's ledger to " + want.To}, missing("to", want.To)
}

// weighNodeRemoval: to wait for a removal that has been begun takes nobody else.
func (h *handler) weighNodeRemoval(r *http.Request, want api.NodeName) (deed, error) {
	if err := missing("node", want.Node); err != nil {
		return deed{}, err
	}
	m, err := h.Drains.Removal(r.Context(), want.Node)
	if err != nil || m.State != api.RemovalNone {
		return deed{}, err
	}
	text := "take node " + want.Node + " out of the group for good"
	for _, s := range m.Storages {
		text += fmt.Sprintf(", and with it storage %s, which nobody else has (backups in it: %d, nowhere else: %d)", s.Name, s.Backups, s.Only)
	}
	return deed{operations: []string{api.ApproveNode}, text: text}, nil
}

func weighForgetting(_ *http.Request, want api.NodeName) (deed, error) {
	return deed{operations: []string{api.ApproveNode}, text: "have the group forget node " + want.Node}, missing("node", want.Node)
}

func weighCheck(r *http.Request, want api.CheckStorage) (deed, error) {
	if !want.Fix {
		return deed{}, nil
	}
	return deed{operations: []string{api.ApproveStorage}, text: "remove from storage " + r.PathValue("name") + " what nothing counts"}, nil
}
