package web

import (
	"html/template"
	"strings"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// View is a page that is shown.
type View struct {
	Path  string // as a ServeMux knows it, without method
	Title string
	Least api.Role // that may see it; empty: anybody

	menu  string // its name in the menu; empty: it is not there
	live  bool   // without script it loads itself again
	sheet string
	data  func(v *visit) (any, error)
	whole func(v *visit) // answers by itself, instead of data
}

// frame is what the layout shows around a page.
type frame struct {
	Title, Group, Node string
	Name               string // of who is logged in
	Role               api.Role
	Token              string
	Menu               []entry
	Refresh            bool
	Said, Note         string
	Again              bool   // a form is shown again, filled as it was
	Self               string // where it is looked at again, when that is not where it was asked for
	Watch              string // the resources whose changes are streamed
	Wrong              *api.Error
	Main               any
}

// entry is a line of the menu.
type entry struct {
	Path, Name string
	Here       bool
}

func (v *visit) frame(page View, data any) frame {
	f := frame{
		Title: page.Title, Group: v.cfg.Group, Node: v.cfg.Node, Name: v.who.Name, Role: v.who.Role, Token: v.token, Wrong: v.wrong, Refresh: page.live && v.reads(),
		Said: said[v.r.URL.Query().Get("done")], Note: v.note, Again: v.form != nil, Self: v.self, Watch: v.watched, Main: data,
	}
	if v.who.Name == "" {
		return f
	}
	for _, p := range v.Views() {
		if p.menu != "" && v.may(p.Least) {
			path := strings.TrimSuffix(p.Path, "{$}")
			f.Menu = append(f.Menu, entry{path, p.menu, page.Path == p.Path || path != "/" && strings.HasPrefix(page.Path, path+"/")})
		}
	}
	return f
}

// said are the sentences that a page begins with after a deed, by the word in its address: nothing else from there is shown.
var said = map[string]string{
	"backup": "The backup is planned.", "restore": "The restore is planned.", "verify": "The verification is planned.", "replicate": "The copying is planned.",
	"delete": "The deletion is planned.", "undelete": "The deletion is taken back.", "mark": "The mark is kept.",
	"cancel": "The task is asked to end.", "undo": "The names are swapped back.",
	"run": "A task of the schedule is planned.", "enable": "The schedule makes tasks again.", "disable": "The schedule makes no tasks.", "confirm": "Retention may remove them now.",
	"pause": "The component claims nothing new.", "resume": "The component claims again.", "tick": "A tick was begun.",
	"free": "The claim has ended; its item is free.", "quarantine": "The claim has ended; its item is set aside.",
	"drain": "The node begins nothing new.", "undrain": "The node works again.", "retry": "Everybody may try again.", "drop": "The recovery has ended.",
	"setting": "The group works with it from now on.", "removesetting": "It is removed; backups stay.", "look": "The server is asked.", "forget": "Nothing more is expected of it; its backups stay.",
	"ask": "That takes a second person: it waits, and nothing was done yet.", "approve": "It is approved.", "refuse": "It is refused, and nothing was done.",
	"finalize": "The group writes the next protocol from now on.",
	"user":     "The user is changed.", "adduser": "The user may log in.", "removeuser": "The user is gone.", "removetoken": "The token is worth nothing any more.",
}

// parse reads every sheet together with the layout and the parts that all may use.
func (s *Site) parse() map[string]*template.Template {
	sheets := map[string]*template.Template{}
	list, err := sheetFiles.ReadDir("tmpl")
	if err != nil {
		panic("web: " + err.Error())
	}
	for _, f := range list {
		name := strings.TrimSuffix(f.Name(), ".html")
		if name == "layout" || name == "parts" {
			continue
		}
		sheets[name] = template.Must(template.New(f.Name()).Funcs(s.words()).ParseFS(sheetFiles, "tmpl/layout.html", "tmpl/parts.html", "tmpl/"+f.Name()))
	}
	return sheets
}
