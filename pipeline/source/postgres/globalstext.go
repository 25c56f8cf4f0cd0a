package postgres

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fencepost/fencepost/pipeline/source"
)

// What pg_dumpall writes of a whole server is split into statements and put in order by what each is about. Only the first words of
// a statement are looked at: it is run, or compared, as it stands.

// lexeme is a part of a statement.
type lexeme struct {
	text     string // as it is meant: without quotes
	quoted   byte   // '"' a name, '\'' a text, 0 anything else
	from, to int    // where it stands in the statement
}

func (w lexeme) is(keyword string) bool { return w.quoted == 0 && w.text == keyword }

// statement is one of them, without the semicolon.
type statement struct {
	text  string
	words []lexeme
}

// splitStatements splits what pg_dumpall has written. Comments and lines for psql are left out.
func splitStatements(text string) (list []statement, err error) {
	var now statement
	from := 0 // where the present one begins
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case strings.IndexByte(" \t\r\n", c) >= 0:
			i++
		case strings.HasPrefix(text[i:], "--") || c == '\\' && len(now.words) == 0:
			i += len(text[i:][:endOf(text[i:], "\n")])
		case c == ';':
			if len(now.words) > 0 {
				now.text = text[from:i]
				list = append(list, now)
			}
			now = statement{}
			i++
		default:
			w, length := firstLexeme(text[i:])
			if length == 0 {
				return nil, fmt.Errorf("%w: it ends within %q", source.ErrIncomplete, source.PartGlobals)
			}
			if len(now.words) == 0 {
				from = i
			}
			w.from, w.to = i-from, i-from+length
			now.words = append(now.words, w)
			i += length
		}
	}
	if len(now.words) > 0 {
		return nil, fmt.Errorf("%w: the last statement of %q has no end", source.ErrIncomplete, source.PartGlobals)
	}
	return list, nil
}

// endOf is the length of text up to what ends it, or all of it.
func endOf(text, end string) int {
	if n := strings.Index(text, end); n >= 0 {
		return n
	}
	return len(text)
}

// firstLexeme is the word that text begins with, and how long it is there; 0 when a quote has no end.
func firstLexeme(text string) (lexeme, int) {
	escapes, at := false, 0
	if strings.HasPrefix(text, "E'") {
		escapes, at = true, 1
	}
	quote := text[at]
	if quote != '"' && quote != '\'' {
		n := strings.IndexAny(text, " \t\r\n;'\"(),=")
		switch n {
		case -1:
			n = len(text)
		case 0:
			n = 1
		}
		return lexeme{text: text[:n]}, n
	}
	var b strings.Builder
	for i := at + 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && escapes && i+1 < len(text):
			i++
			b.WriteString(text[i-1 : i+1])
		case c == quote && i+1 < len(text) && text[i+1] == quote:
			i++
			b.WriteByte(quote)
		case c == quote:
			return lexeme{text: b.String(), quoted: quote}, i + 1
		default:
			b.WriteByte(c)
		}
	}
	return lexeme{}, 0
}

// find is the place behind keywords that follow each other, or -1.
func (s statement) find(keywords ...string) int {
	for i := range s.words {
		if len(s.words)-i > len(keywords) && slices.EqualFunc(s.words[i:i+len(keywords)], keywords, lexeme.is) {
			return i + len(keywords)
		}
	}
	return -1
}

func (s statement) begins(keywords ...string) bool { return s.find(keywords...) == len(keywords) }

// about is what a statement makes, or says of something that another one makes. ok is false for those that only set up a
// session.
func (s statement) about() (kind, name string, ok bool) {
	named := func(i int) string { return s.words[i].text }
	switch onSpace, onParameter := s.find("ON", "TABLESPACE"), s.find("ON", "PARAMETER"); {
	case s.begins("SET"):
		return "", "", false
	case s.begins("ALTER", "ROLE") && len(s.words) > 4 && s.words[3].is("SET"):
		return source.GlobalSetting, named(4) + " of " + named(2), true
	case s.begins("CREATE", "ROLE"), s.begins("ALTER", "ROLE") && len(s.words) > 3 && s.words[3].is("WITH"):
		return source.GlobalRole, named(2), true
	case s.begins("COMMENT", "ON", "ROLE"):
		return source.GlobalRole, named(3), true
	case s.begins("SECURITY", "LABEL") && s.find("ON", "ROLE") > 0:
		return source.GlobalRole, named(s.find("ON", "ROLE")), true
	case s.begins("CREATE", "TABLESPACE"), s.begins("ALTER", "TABLESPACE"):
		return source.GlobalTablespace, named(2), true
	case onSpace > 0 && (s.begins("GRANT") || s.begins("REVOKE") || s.begins("COMMENT") || s.begins("SECURITY", "LABEL")):
		return source.GlobalTablespace, named(onSpace), true
	case onParameter > 0 && (s.begins("GRANT") || s.begins("REVOKE")):
		return source.GlobalParameter, named(onParameter), true
	case s.begins("GRANT") && len(s.words) > 3 && s.words[2].is("TO"):
		return source.GlobalMembership, named(3) + " in " + named(1), true
	}
	return source.GlobalUnknown, s.hidden(), true
}

// password is the word that holds one; nil: there is none.
func (s statement) password() *lexeme {
	if i := s.find("PASSWORD"); i > 0 && s.words[i].quoted == '\'' {
		return &s.words[i]
	}
	return nil
}

// hidden is the statement for people: what is behind PASSWORD is not in it.
func (s statement) hidden() string {
	if p := s.password(); p != nil {
		return s.text[:p.from] + "'…'" + s.text[p.to:]
	}
	return s.text
}

// unsaid is the statement without its password.
func (s statement) unsaid() string {
	if p := s.password(); p != nil {
		return strings.TrimSuffix(strings.TrimSpace(s.text[:p.from]), "PASSWORD") + strings.TrimSpace(s.text[p.to:])
	}
	return s.text
}

// globals are the things of a whole server, in the order in which they are made.
type globals struct {
	order []globalKey
	made  map[globalKey][]statement
}

type globalKey struct{ kind, name string }

func parseGlobals(text string) (globals, error) {
	g := globals{made: map[globalKey][]statement{}}
	list, err := splitStatements(text)
	if err != nil {
		return g, err
	}
	for _, s := range list {
		kind, name, ok := s.about()
		if !ok {
			continue
		}
		key := globalKey{kind, name}
		if g.made[key] == nil {
			g.order = append(g.order, key)
		}
		g.made[key] = append(g.made[key], s)
	}
	return g, nil
}

// passwords tells whether any is in it.
func (g globals) passwords() bool {
	for _, list := range g.made {
		if slices.ContainsFunc(list, func(s statement) bool { return s.password() != nil }) {
			return true
		}
	}
	return false
}

// compareGlobals compares a dump with a server. Without passwords these are not looked at.
func compareGlobals(want, have globals, passwords bool) source.GlobalsDiff {
	d := source.GlobalsDiff{Missing: []source.Global{}, Differ: []source.Global{}, Extra: []source.Global{}, Passwords: passwords}
	for _, key := range want.order {
		g := source.Global{Kind: key.kind, Name: key.name, Want: shown(want.made[key]), Have: shown(have.made[key]), NoPassword: noPassword(key, want.made[key])}
		switch there := have.made[key] != nil; {
		case !there && key.kind == source.GlobalUnknown:
			d.Differ = append(d.Differ, g)
		case !there:
			d.Missing = append(d.Missing, g)
		case !slices.Equal(compared(want.made[key], passwords), compared(have.made[key], passwords)):
			d.Differ = append(d.Differ, g)
		}
	}
	for _, key := range have.order {
		if want.made[key] == nil {
			d.Extra = append(d.Extra, source.Global{Kind: key.kind, Name: key.name, Have: shown(have.made[key])})
		}
	}
	return d
}

func shown(list []statement) (texts []string) {
	for _, s := range list {
		texts = append(texts, s.hidden())
	}
	return texts
}

func compared(list []statement, passwords bool) (texts []string) {
	for _, s := range list {
		if text := s.text; passwords {
			texts = append(texts, text)
		} else {
			texts = append(texts, s.unsaid())
		}
	}
	return texts
}

// noPassword tells whether it is a role that logs in and has none here.
func noPassword(key globalKey, list []statement) bool {
	if key.kind != source.GlobalRole {
		return false
	}
	logsIn := slices.ContainsFunc(list, func(s statement) bool {
		return s.find("LOGIN") > 0 || len(s.words) > 0 && s.words[len(s.words)-1].is("LOGIN")
	})
	return logsIn && !slices.ContainsFunc(list, func(s statement) bool { return s.password() != nil })
}
