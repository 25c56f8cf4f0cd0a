package settings

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
)

// plan is what is to be done to get from one state of affairs to another.
type plan struct {
	next    configs.Settings
	changes []api.SettingChange
	same    int
	left    int
}

// changesTo compares what there is with what is wanted; what is not wanted stays, or goes with prune. Pure.
func changesTo(now, want []configs.Object, prune bool) (all []configs.Object, p plan) {
	wanted := map[string]configs.Object{}
	for _, o := range want {
		wanted[oneKey(o)] = o
	}
	for _, was := range now {
		o, asked := wanted[oneKey(was)]
		delete(wanted, oneKey(was))
		switch {
		case asked && bytes.Equal(o.Spec, was.Spec):
			p.same++
			all = append(all, was)
		case asked:
			p.changes = append(p.changes, api.SettingChange{Kind: o.Kind, Name: o.Name, Change: api.SettingChanged, Keys: differ(was.Spec, o.Spec), Before: was.Spec, After: o.Spec})
			all = append(all, o)
		case prune:
			p.changes = append(p.changes, api.SettingChange{Kind: was.Kind, Name: was.Name, Change: api.SettingRemoved, Before: was.Spec})
		default:
			p.left++
			all = append(all, was)
		}
	}
	for _, o := range want { // in their order
		if _, isNew := wanted[oneKey(o)]; isNew {
			p.changes = append(p.changes, api.SettingChange{Kind: o.Kind, Name: o.Name, Change: api.SettingAdded, After: o.Spec})
			all = append(all, o)
		}
	}
	return all, p
}

// unchanged is an error when a setting is not as who asks has seen it: what somebody else has done meanwhile is not undone by
// who does not know of it.
func unchanged(now []configs.Object, seen []api.SeenSetting) error {
	for _, was := range seen {
		i := slices.IndexFunc(now, func(o configs.Object) bool { return o.Kind == was.Kind && o.Name == was.Name })
		what := was.Kind + " " + was.Name
		switch {
		case i < 0 && was.Tag == api.NoSetting, i >= 0 && was.Tag == api.SpecTag(now[i].Spec):
		case i < 0:
			return &api.Error{Code: api.CodeConflict, Message: what + " was removed meanwhile: nothing was changed", Hint: "look at the settings again"}
		case was.Tag == api.NoSetting:
			return &api.Error{Code: api.CodeConflict, Message: "there is a " + what + " already: nothing was changed", Hint: "choose another name, or change the one that there is"}
		default:
			return &api.Error{Code: api.CodeConflict, Message: "somebody has changed " + what + " meanwhile: nothing was changed", Hint: "look at it again"}
		}
	}
	return nil
}

// differ are the keys whose values differ.
func differ(a, b json.RawMessage) []string {
	var was, is map[string]json.RawMessage
	if json.Unmarshal(a, &was) != nil || json.Unmarshal(b, &is) != nil {
		return nil
	}
	keys := map[string]bool{}
	for key, value := range was {
		if !bytes.Equal(value, is[key]) {
			keys[key] = true
		}
	}
	for key, value := range is {
		if !bytes.Equal(value, was[key]) {
			keys[key] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}
