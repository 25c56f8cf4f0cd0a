package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// ErrNoServer: the programs of a PostgreSQL server are not installed.
var ErrNoServer = errors.New("no PostgreSQL server programs found: install them (Debian: apt-get install postgresql; " +
	"Fedora: dnf install postgresql-server; macOS: brew install postgresql) or name their directory")

// BinDir returns the directory that holds initdb and postgres: that of the highest version in the places where
// packages put them, else the one found through PATH. ErrNoServer when there is none.
func BinDir() (string, error) {
	var dirs []string
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin",
		"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin", `C:\Program Files\PostgreSQL\*\bin`,
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", fmt.Errorf("search for PostgreSQL programs: %w", err)
		}
		dirs = append(dirs, found...)
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return versionIn(b) - versionIn(a) })
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(initdb); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	for _, dir := range dirs {
		if isProgram(dir, "initdb") && isProgram(dir, "postgres") {
			return dir, nil
		}
	}
	return "", ErrNoServer
}

// versionIn returns the last number in a path: 15 for /usr/lib/postgresql/15/bin, 0 when it has none.
func versionIn(path string) int {
	fields := strings.FieldsFunc(path, func(r rune) bool { return r < '0' || r > '9' })
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		return 0
	}
	return n
}

func isProgram(dir, name string) bool {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular()
}
