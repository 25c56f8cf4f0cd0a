package dropboxtest

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// entry is a file or a folder, or a revision of a file that is not there any more.
type entry struct {
	folder   bool
	path     string // as it was given
	id, rev  string
	size     int64
	hash     string
	blob     string // file of Options.Dir
	client   time.Time
	modified time.Time
	seq      int64
}

// tree is the account's namespace. Keys of entries are paths in lower case.
type tree struct {
	entries map[string]*entry
	revs    map[string]*entry // every revision that ever was
	gone    map[string]int64  // when a path was deleted, as a number of the journal
	used    int64
}

func newTree() tree {
	return tree{entries: map[string]*entry{}, revs: map[string]*entry{}, gone: map[string]int64{}}
}

// fold is what the case of a path does not change.
func fold(path string) string { return strings.ToLower(path) }

// parent of a path; "" is the root.
func parent(path string) string { return path[:strings.LastIndexByte(path, '/')] }

func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

func (t *tree) paths() []string {
	var files []string
	for _, key := range slices.Sorted(maps.Keys(t.entries)) {
		if !t.entries[key].folder {
			files = append(files, key)
		}
	}
	return files
}

// mode is how a commit treats what is there.
type mode struct {
	tag    string // add, update, overwrite
	rev    string // of update
	strict bool
}

// put puts a file and makes its folders. It answers the file that is there afterwards, or the tag of why not.
func (t *tree) put(e *entry, m mode, quota int64) (*entry, string) {
	key := fold(e.path)
	for up := parent(key); up != ""; up = parent(up) {
		if a := t.entries[up]; a != nil && !a.folder {
			return nil, "conflict/file_ancestor"
		}
	}
	old := t.entries[key]
	switch {
	case old != nil && old.folder:
		return nil, "conflict/folder"
	case old != nil && !m.strict && old.hash == e.hash:
		return old, ""
	case old != nil && m.tag == "add", old != nil && m.tag == "update" && old.rev != m.rev, old == nil && m.tag == "update" && m.strict:
		return nil, "conflict/file"
	case t.used+e.size > quota:
		return nil, "insufficient_space"
	}
	for up := parent(key); up != ""; up = parent(up) {
		if t.entries[up] == nil {
			t.entries[up] = &entry{folder: true, path: e.path[:len(up)], id: "id:" + up, seq: e.seq}
			delete(t.gone, up)
		}
	}
	if old != nil {
		e.id = old.id
		t.used -= old.size
	}
	t.used += e.size
	t.entries[key], t.revs[e.rev] = e, e
	delete(t.gone, key)
	return e, ""
}

// remove takes a file, or a folder with all that is in it, away.
func (t *tree) remove(key string, seq int64) *entry {
	found := t.entries[key]
	for k, e := range t.entries {
		if k == key || strings.HasPrefix(k, key+"/") {
			delete(t.entries, k)
			t.gone[k] = seq
			t.used -= e.size
		}
	}
	return found
}

// find looks for a path, or a revision as "rev:...".
func (t *tree) find(path string) *entry {
	if rev, ok := strings.CutPrefix(path, "rev:"); ok {
		return t.revs[rev]
	}
	return t.entries[fold(path)]
}

// below returns what is in a folder, in an order that means nothing.
func (t *tree) below(folder string, recursive bool) []*entry {
	prefix := fold(folder) + "/"
	var found []*entry
	for key, e := range t.entries {
		if rest, ok := strings.CutPrefix(key, prefix); ok && (recursive || !strings.Contains(rest, "/")) {
			found = append(found, e)
		}
	}
	return found
}
