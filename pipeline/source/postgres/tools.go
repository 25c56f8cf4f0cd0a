package postgres

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// tool is one installed client program.
type tool struct {
	path    string
	version string // "15.18"
}

func (t tool) major() int { return majorOf(t.version) }

// majorOf returns the leading number of a version: 15 for "15.18 (Debian)", 0 when there is none.
func majorOf(version string) int {
	digits := strings.IndexFunc(version+".", func(r rune) bool { return r < '0' || r > '9' })
	n, err := strconv.Atoi(version[:digits])
	if err != nil {
		return 0
	}
	return n
}

// choose returns the program of the smallest major version that is not below need, and of the newest minor version.
func choose(found []tool, need int) (tool, bool) {
	fits := slices.DeleteFunc(slices.Clone(found), func(t tool) bool { return t.major() < need })
	if len(fits) == 0 {
		return tool{}, false
	}
	return slices.MinFunc(fits, func(a, b tool) int {
		if a.major() != b.major() {
			return a.major() - b.major()
		}
		return minorOf(b.version) - minorOf(a.version)
	}), true
}

func minorOf(version string) int {
	_, minor, _ := strings.Cut(version, ".")
	return majorOf(minor)
}

// findTool returns the installed program that fits a server (or an archive) of a major version.
func (s *Source) findTool(ctx context.Context, name string, need int) (tool, error) {
	var found []tool
	packaged, onPath := s.candidates(name)
	for _, paths := range [][]string{packaged, onPath} {
		for _, path := range paths {
			if version, err := toolVersion(ctx, path); err == nil {
				found = append(found, tool{path, version})
			}
		}
		if t, ok := choose(found, need); ok {
			return t, nil
		}
	}
	if ctx.Err() != nil { // then nobody was asked
		return tool{}, s.wrap(ctx, ctx.Err(), "find %s", name)
	}
	have := make([]string, len(found))
	for i, t := range found {
		have[i] = t.version
	}
	what := fmt.Sprintf("%s of version %d or newer is needed, and none is installed", name, need)
	if len(have) > 0 {
		what += " (found " + strings.Join(have, ", ") + ")"
	}
	hint := fmt.Sprintf("install the PostgreSQL client programs (Debian: apt-get install postgresql-client-%d), or set where they are", need)
	if name == "initdb" {
		hint = fmt.Sprintf("install the PostgreSQL server on this node (Debian: apt-get install postgresql-%d), or name a scratch server", need)
	}
	return tool{}, s.errorf(problem{what: what, hint: hint}, "find %s", name)
}

// Programs implements source.ProgramHaver by pg_dump; the other programs come in the same package.
func (s *Source) Programs() []string {
	packaged, onPath := s.candidates("pg_dump")
	return slices.Concat(packaged, onPath)
}

// ClientMajor implements source.ProgramHaver.
func (s *Source) ClientMajor(ctx context.Context) (newest int) {
	for _, path := range s.Programs() {
		if version, err := toolVersion(ctx, path); err == nil {
			newest = max(newest, majorOf(version))
		}
	}
	return newest
}

// candidates lists where a program may be: where packages put it, and what PATH finds, which may be a slow wrapper and is
// asked last.
func (s *Source) candidates(name string) (packaged, onPath []string) {
	file := name
	if runtime.GOOS == "windows" {
		file += ".exe"
	}
	if s.cfg.BinDir != "" {
		return []string{filepath.Join(s.cfg.BinDir, file)}, nil
	}
	for _, dir := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql@*/bin",
		"/usr/local/opt/postgresql@*/bin", "/opt/homebrew/opt/libpq/bin", `C:\Program Files\PostgreSQL\*\bin`,
	} {
		found, _ := filepath.Glob(filepath.Join(dir, file)) // only a bad pattern fails
		packaged = append(packaged, found...)
	}
	if path, err := exec.LookPath(name); err == nil {
		onPath = append(onPath, path)
	}
	return packaged, onPath
}

var versionLine = regexp.MustCompile(`\) (\d+[.0-9a-z]*)`)

// toolVersion asks a program for its version: "pg_dump (PostgreSQL) 15.18 (Debian 15.18-1)".
func toolVersion(ctx context.Context, path string) (string, error) {
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", path, err)
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("ask %s for its version: it says %.60q", path, out)
	}
	return string(m[1]), nil
}

func programName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".exe") }
