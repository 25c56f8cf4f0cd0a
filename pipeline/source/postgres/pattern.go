package postgres

import (
	"errors"
	"fmt"
	"strings"
)

// pattern is one filter, in the two forms in which others understand it: as a pattern of pg_dump and as a regular
// expression of the server.
type pattern struct {
	text                   string // as it was given
	schemaGlob, nameGlob   string // each for pg_dump; schemaGlob is "" in a filter of schemas
	schemaRegex, nameRegex string
}

// glob is the whole pattern for pg_dump.
func (p pattern) glob() string {
	if p.schemaGlob == "" {
		return p.nameGlob
	}
	return p.schemaGlob + "." + p.nameGlob
}

// parseSchema reads a filter of schemas. A dot in it is part of the name.
func parseSchema(text string) (pattern, error) {
	parts, err := splitPattern(text, false)
	if err != nil {
		return pattern{}, err
	}
	return pattern{text: text, nameGlob: parts[0].glob(), nameRegex: parts[0].regex()}, nil
}

// parseTable reads a filter of tables: table, or schema.table.
func parseTable(text string) (pattern, error) {
	parts, err := splitPattern(text, true)
	switch {
	case err != nil:
		return pattern{}, err
	case len(parts) == 1:
		parts = []words{{word{wild: '*'}}, parts[0]}
	case len(parts) > 2:
		return pattern{}, fmt.Errorf("filter %s has more than one dot: put names with dots in double quotes", text)
	}
	return pattern{text, parts[0].glob(), parts[1].glob(), parts[0].regex(), parts[1].regex()}, nil
}

// word is a run of literal text, or a wildcard.
type word struct {
	text string
	wild byte // '*', '?', or 0
}

type words []word

// splitPattern reads a pattern, and cuts it at dots outside quotes if asked to.
func splitPattern(text string, dots bool) ([]words, error) {
	parts := []words{nil}
	quoted := false
	var run strings.Builder
	flush := func() {
		if last := len(parts) - 1; run.Len() > 0 {
			parts[last] = append(parts[last], word{text: run.String()})
			run.Reset()
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == 0:
			return nil, errors.New("a filter with a zero byte matches nothing")
		case c == '"' && quoted && i+1 < len(text) && text[i+1] == '"':
			run.WriteByte(c)
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '*' || c == '?'):
			flush()
			last := len(parts) - 1
			parts[last] = append(parts[last], word{wild: c})
		case !quoted && dots && c == '.':
			flush()
			parts = append(parts, nil)
		default:
			run.WriteByte(c)
		}
	}
	flush()
	for _, part := range parts {
		if len(part) == 0 || quoted {
			return nil, fmt.Errorf("filter %q is not a name or pattern", text)
		}
	}
	return parts, nil
}

// glob quotes every literal, so that pg_dump neither folds its case nor finds a special character in it.
func (w words) glob() string {
	var b strings.Builder
	for _, one := range w {
		if one.wild != 0 {
			b.WriteByte(one.wild)
		} else {
			b.WriteString(`"` + strings.ReplaceAll(one.text, `"`, `""`) + `"`)
		}
	}
	return b.String()
}

func (w words) regex() string {
	var b strings.Builder
	b.WriteString("^(?:")
	for _, one := range w {
		switch one.wild {
		case '*':
			b.WriteString(".*")
		case '?':
			b.WriteString(".")
		}
		for _, r := range one.text {
			if r < 0x80 && !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_') {
				b.WriteByte('\\')
			}
			b.WriteRune(r)
		}
	}
	b.WriteString(")$")
	return b.String()
}
