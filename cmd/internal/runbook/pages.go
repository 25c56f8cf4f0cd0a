package runbook

import (
	"cmp"
	"embed"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed day_*.go
var files embed.FS

// Page is what is to be done on one bad day.
type Page struct {
	Name  string // "quorum-lost"
	Title string // one sentence without a full stop
	Text  string // all of it, as people read it
	Steps []Step // the commands, in order
}

// Step is one command of a page.
type Step struct {
	Machine string   // on which it is given: n1, n2, n3, ca, new
	Command string   // for a shell
	Says    []string // what it answers, line by line; "…" stands for any text
	Code    int      // its exit code
}

// Pages are all pages, by name.
func Pages() []Page {
	names, err := fs.Glob(files, "day_*.go")
	if err != nil {
		panic("runbook: a pattern that was tried is refused: " + err.Error())
	}
	var list []Page
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			panic("runbook: an embedded file is not there: " + err.Error())
		}
		list = append(list, read(name, string(text)))
	}
	slices.SortFunc(list, func(a, b Page) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Find is the page of a name.
func Find(name string) (Page, bool) {
	all := Pages()
	i := slices.IndexFunc(all, func(p Page) bool { return p.Name == name })
	if i < 0 {
		return Page{}, false
	}
	return all[i], true
}

var (
	commandLine = regexp.MustCompile(`^\t(n[123]|ca|new)\$ (.+)$`)
	codeLine    = regexp.MustCompile(`^\t\(exit (\d+)\)$`)
)

// read makes a page of a file's doc comment.
func read(file, source string) Page {
	doc, _, _ := strings.Cut(source, "\npackage runbook")
	p := Page{Name: strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(path.Base(file), "day_"), ".go"), "_", "-")}
	var text strings.Builder
	for line := range strings.SplitSeq(doc, "\n") {
		line = strings.TrimPrefix(strings.TrimPrefix(line, "//"), " ")
		if title, ok := strings.CutPrefix(line, "# "); ok && p.Title == "" {
			p.Title = title
			continue
		}
		text.WriteString(strings.ReplaceAll(line, "\t", "    ") + "\n")
		p.add(line)
	}
	p.Text = strings.TrimSpace(p.Title) + "\n\n" + strings.Trim(text.String(), "\n") + "\n"
	return p
}

// add reads one line: a command, what the last one answers, or words.
func (p *Page) add(line string) {
	if m := commandLine.FindStringSubmatch(line); m != nil {
		p.Steps = append(p.Steps, Step{Machine: m[1], Command: m[2]})
		return
	}
	said, ok := strings.CutPrefix(line, "\t")
	if !ok || len(p.Steps) == 0 {
		return
	}
	last := &p.Steps[len(p.Steps)-1]
	if m := codeLine.FindStringSubmatch(line); m != nil {
		last.Code, _ = strconv.Atoi(m[1]) // it is digits
		return
	}
	last.Says = append(last.Says, said)
}
