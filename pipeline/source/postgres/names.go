package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fencepost/fencepost/pipeline/source"
)

// maxName is the longest name of a database, in bytes.
const maxName = 63

// preparedName is the name of a database while an attempt fills it: <target>__fp_<token>_<hash of the task>. The name
// alone tells whose it is, so that no crash between two statements can leave one that nobody owns.
func preparedName(target string, a source.Attempt) string {
	return shorten(target, fmt.Sprintf("__fp_%d_%s", a.Token, hash8(a.Task)))
}

// undoName is the name under which a replaced database is kept.
func undoName(target string, a source.Attempt) string {
	return shorten(target, fmt.Sprintf("__was_%d", a.Token))
}

// shorten returns name + suffix in at most 63 bytes: a name that is too long is cut between characters and marked with
// the hash of the whole.
func shorten(name, suffix string) string {
	if len(name)+len(suffix) <= maxName {
		return name + suffix
	}
	mark := "_" + hash8(name)
	cut := maxName - len(suffix) - len(mark)
	for cut > 0 && !utf8.RuneStart(name[cut]) {
		cut--
	}
	return name[:cut] + mark + suffix
}

func hash8(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

var preparedPattern = regexp.MustCompile(`__fp_([0-9]{1,16})_([0-9a-f]{8})$`)

// preparedBy returns the token of the attempt of a task that made a database; not ok for every other database.
func preparedBy(database, task string) (uint64, bool) {
	m := preparedPattern.FindStringSubmatch(database)
	if m == nil || m[2] != hash8(task) {
		return 0, false
	}
	token, err := strconv.ParseUint(m[1], 10, 64)
	return token, err == nil
}

// checkTarget refuses names that cannot be a restore's target.
func checkTarget(name, maintenance string) error {
	switch {
	case name == "" || len(name) > maxName || !utf8.ValidString(name) || strings.ContainsRune(name, 0):
		return &advised{fmt.Sprintf("%q cannot be the name of a database", name), fmt.Sprintf("give a name of 1 to %d bytes", maxName)}
	case name == "template0" || name == "template1" || name == maintenance:
		return &advised{fmt.Sprintf("database %q belongs to the server and cannot be replaced", name), "restore under another name"}
	}
	return nil
}
