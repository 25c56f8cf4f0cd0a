package pipeline

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// maxToken is the bound below which tokens stay.
const maxToken = 1 << 53

// manifestName is the last element of a manifest's path; no part has this name.
const manifestName = "manifest.json"

var partName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// attemptDir is the path of one attempt's objects. The token has sixteen digits, so that names sort as tokens do.
func attemptDir(backup string, token uint64) string { return fmt.Sprintf("%s/%016d", backup, token) }

// ObjectPath is the name of one part of an attempt in a storage.
func ObjectPath(backup string, token uint64, part string) string {
	return attemptDir(backup, token) + "/" + part
}

// ManifestPath is the name of an attempt's manifest in a storage.
func ManifestPath(backup string, token uint64) string { return ObjectPath(backup, token, manifestName) }

// historyPrefix begins the names of what was archived of a ledger.
const historyPrefix = "history/"

// HistoryPath is the name of archived tasks in a storage, after the first and the last of them.
func HistoryPath(first, last string) string { return historyPrefix + first + "-" + last + ".jsonl" }

// archived tells whether a name is one that HistoryPath made.
func archived(name string) bool {
	_, ended := strings.CutSuffix(name, ".jsonl")
	return ended && strings.HasPrefix(name, historyPrefix)
}

// ParsePath takes a name apart that ObjectPath or ManifestPath made; ok is false for every other name.
func ParsePath(name string) (backup string, token uint64, part string, ok bool) {
	elems := strings.Split(name, "/")
	if len(elems) != 3 || ledger.ValidID(elems[0]) != nil || len(elems[1]) != 16 || !partName.MatchString(elems[2]) {
		return "", 0, "", false
	}
	token, err := strconv.ParseUint(elems[1], 10, 64)
	if err != nil || token >= maxToken || ObjectPath(elems[0], token, elems[2]) != name {
		return "", 0, "", false
	}
	return elems[0], token, elems[2], true
}
