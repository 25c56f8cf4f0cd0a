package web

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// setupData is what belongs to the whole group, and what is made of it.
type setupData struct {
	Kinds     []settingKind
	Settings  map[string][]api.Setting // by kind
	Servers   map[string]api.Server    // by name
	Databases []api.Database           // that the node knows
	May       bool
}

// Made tells whether anything was set for the whole group.
func (d setupData) Made() bool { return len(d.Settings) > 0 }

func setup(v *visit) (any, error) {
	all, err := ask[api.Settings](v, api.PathSettings)
	if err != nil {
		return nil, err
	}
	d := setupData{Kinds: settingKinds, Settings: map[string][]api.Setting{}, Servers: map[string]api.Server{}, May: v.may(api.RoleAdmin)}
	for _, s := range all.Settings {
		d.Settings[s.Kind] = append(d.Settings[s.Kind], s)
	}
	servers, err := ask[[]api.Server](v, api.PathServers)
	if err != nil {
		return nil, err
	}
	for _, s := range servers {
		d.Servers[s.Name] = s
	}
	d.Databases, err = ask[[]api.Database](v, api.PathDatabases)
	return d, err
}

// settingData is the form of one setting: a new one, when Name is empty.
type settingData struct {
	settingKind
	Setting string            // its name, which does not change
	Named   string            // of a new one, when the form is shown again
	Values  map[string]string // of the fields, as they are typed
	More    string            // keys without a field, as JSON; empty: none
	Seen    string            // tag of what the form shows: what somebody else does meanwhile is not undone by it
	Now     string            // what is there, when it is not what the form was made of; empty: it is
	May     bool
}

func setting(v *visit) (any, error) {
	kind, err := kindOf(v.r.PathValue("kind"))
	if err != nil {
		return nil, err
	}
	d := settingData{settingKind: kind, Setting: v.r.PathValue("name"), Named: v.form.Get("name"), Values: map[string]string{}, More: v.form.Get("more"), Seen: api.NoSetting, May: v.may(api.RoleAdmin)}
	for _, f := range kind.Fields {
		d.Values[f.Key] = v.form.Get(f.Key)
	}
	if d.Setting == "" {
		return d, nil
	}
	spec, err := v.settingOf(kind.Kind, d.Setting)
	if v.form != nil {
		return v.setAgain(d, spec, err)
	}
	if err != nil {
		return nil, err
	}
	d.Seen = api.SpecTag(spec)
	was := map[string]any{}
	if err := json.Unmarshal(spec, &was); err != nil {
		return nil, err
	}
	for _, f := range kind.Fields {
		d.Values[f.Key] = f.typed(was[f.Key])
		delete(was, f.Key)
	}
	delete(was, kind.named())
	if len(was) > 0 {
		d.More, err = pretty(was)
	}
	return d, err
}

// setAgain is the form as it was filled, with what is there by now: who sends it once more knows of that.
func (v *visit) setAgain(d settingData, now json.RawMessage, err error) (any, error) {
	d.Seen = api.SpecTag(now)
	if err != nil {
		if problemOf(err).Code != api.CodeNotFound {
			return nil, err
		}
		d.Seen = api.NoSetting
	}
	switch seen := v.form.Get("seen"); {
	case seen == "" || seen == d.Seen:
	case d.Seen == api.NoSetting:
		d.Now = "it is not there any more"
	default:
		d.Now = shown(d.settingKind, now)
	}
	return d, nil
}

func kindOf(name string) (settingKind, error) {
	i := slices.IndexFunc(settingKinds, func(k settingKind) bool { return k.Kind == name })
	if i < 0 {
		return settingKind{}, &api.Error{Code: api.CodeNotFound, Message: "there are no settings of that kind"}
	}
	return settingKinds[i], nil
}

// settingOf is the spec of one setting.
func (v *visit) settingOf(kind, name string) (json.RawMessage, error) {
	all, err := ask[api.Settings](v, api.PathSettings)
	if err != nil {
		return nil, err
	}
	for _, s := range all.Settings {
		if s.Kind == kind && s.Name == name {
			return s.Spec, nil
		}
	}
	return nil, &api.Error{Code: api.CodeNotFound, Message: "there is no " + kind + " " + name + " among the group's settings", Hint: "what a node's own file names is changed there"}
}

// spec is what the form says of a setting.
func (v *visit) spec(kind settingKind, name string) (json.RawMessage, error) {
	spec := map[string]any{}
	if more := strings.TrimSpace(v.form.Get("more")); more != "" {
		if err := json.Unmarshal([]byte(more), &spec); err != nil {
			return nil, &api.Error{Code: api.CodeUsage, Message: "other keys: want a JSON object: " + err.Error()}
		}
	}
	for _, f := range kind.Fields {
		value, err := f.value(v.form.Get(f.Key))
		if err != nil {
			return nil, err
		}
		if value != nil {
			spec[f.Key] = value
		}
	}
	spec[kind.named()] = name
	return json.Marshal(spec)
}

func ofSetup() []Deed {
	var fields []string
	for _, k := range settingKinds {
		for _, f := range k.Fields {
			fields = append(fields, f.Key)
		}
	}
	slices.Sort(fields)
	fields = append(slices.Compact(fields), "name", "more", "seen")
	set := func(v *visit) (string, error) {
		kind, err := kindOf(v.r.PathValue("kind"))
		if err != nil {
			return "", err
		}
		name := cmp.Or(v.r.PathValue("name"), v.form.Get("name"))
		if name == "" {
			return "", &api.Error{Code: api.CodeUsage, Message: "name: is missing"}
		}
		spec, err := v.spec(kind, name)
		if err != nil {
			return "", err
		}
		_, err = tell[api.AppliedSettings](v, api.SettingPath(kind.Kind, name), api.SetSetting{Spec: spec, Seen: v.form.Get("seen")})
		return "/setup?done=setting", err
	}
	one := "/setup/{kind}/{name}"
	return []Deed{
		{Path: "/setup/{kind}", Action: "setting.set", Fields: fields, again: "/setup/{kind}", do: set},
		{Path: one, Action: "setting.set", Fields: fields, again: one, do: set},
		{Path: one + "/remove", Action: "setting.remove", again: "/setup", do: func(v *visit) (string, error) {
			_, err := call[api.Ended](v, http.MethodDelete, api.SettingPath(v.r.PathValue("kind"), v.r.PathValue("name")), struct{}{})
			return "/setup?done=removesetting", err
		}},
		{Path: "/servers/{name}/look", Action: "server.look", again: "/setup", do: func(v *visit) (string, error) {
			_, err := tell[api.Server](v, api.PathServers+"/"+segment(v.r.PathValue("name"))+"/look", struct{}{})
			return "/setup?done=look", err
		}},
		{Path: "/databases/{name}/forget", Action: "database.forget", again: "/setup", do: func(v *visit) (string, error) {
			_, err := call[api.Ended](v, http.MethodDelete, api.PathDatabases+"/"+segment(v.r.PathValue("name")), struct{}{})
			return "/setup?done=forget", err
		}},
	}
}

// typed is a value as it stands in a field.
func (f settingField) typed(value any) string {
	switch x := value.(type) {
	case nil:
		return ""
	case string:
		return x
	case []any:
		var list []string
		for _, e := range x {
			text, ok := e.(string)
			if !ok {
				return ""
			}
			list = append(list, text)
		}
		return strings.Join(list, ", ")
	case bool:
		if x {
			return "yes"
		}
		return ""
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return ""
}

// value is what was typed into a field; nil: nothing.
func (f settingField) value(text string) (any, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return nil, nil
	case f.Tick:
		return true, nil
	case f.Number:
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, &api.Error{Code: api.CodeUsage, Message: f.Key + ": want a number"}
		}
		return n, nil
	case f.List:
		list := strings.Split(text, ",")
		for i, s := range list {
			list[i] = strings.TrimSpace(s)
		}
		return slices.DeleteFunc(list, func(s string) bool { return s == "" }), nil
	}
	return text, nil
}

// shown is a setting's keys in one line, without its name.
func shown(kind settingKind, spec json.RawMessage) string {
	keys := map[string]any{}
	if json.Unmarshal(spec, &keys) != nil {
		return string(spec)
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if key != kind.named() {
			parts = append(parts, strings.TrimSpace(key+" "+plainly(keys[key])))
		}
	}
	return strings.Join(parts, " · ")
}

// plainly is a value as people write it; what is true needs no word.
func plainly(value any) string {
	switch x := value.(type) {
	case string:
		return x
	case bool:
		if x {
			return ""
		}
	case []any:
		var list []string
		for _, e := range x {
			list = append(list, plainly(e))
		}
		return strings.Join(list, ", ")
	}
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}
