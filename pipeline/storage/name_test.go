package storage_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/storage"
)

func TestValidName(t *testing.T) {
	long, tooLong := strings.Repeat("e", storage.MaxElement), strings.Repeat("e", storage.MaxElement+1)
	for _, name := range []string{
		"a", "a/b/c", "app-20260101/17/manifest.json", "Größe", "with space", " ", "..a", "a..", "...", "100%25", "%2e%2e", "C:x",
		storage.OwnerName, storage.GroupFolder + "/00042", storage.GroupFolder + "/a-1", "fencepost/x", "a/_fencepost/b", long, long + "/" + long + "/" + long + "/" + long,
	} {
		if err := storage.ValidName(name); err != nil {
			t.Errorf("%v", err)
		}
	}
	for name, want := range map[string]string{
		"":                                  "is empty",
		"/a":                                "empty element",
		"a/":                                "empty element",
		"a//b":                              "empty element",
		".":                                 ". or ..",
		"a/./b":                             ". or ..",
		"../a":                              ". or ..",
		"a/..":                              ". or ..",
		"a\x00b":                            "control character",
		"a\tb":                              "control character",
		"a\x7f":                             "control character",
		"a\u0085b":                          "control character",
		`a\b`:                               "backslash",
		"a\xffb":                            "UTF-8",
		tooLong:                             "longer than 200 bytes",
		"a/" + tooLong:                      "longer than 200 bytes",
		strings.Repeat("abcdefghi/", 91):    "longer than 900 bytes",
		"_fencepost":                        "reserved",
		"_fencepost/tmp/put-1":              "reserved",
		"_FENCEPOST/owner.json":             "reserved",
		"_fencepost_too":                    "reserved",
		storage.OwnerName + "/below":        "reserved",
		storage.GroupFolder:                 "reserved",
		storage.GroupFolder + "/A":          "reserved",
		storage.GroupFolder + "/a.b":        "reserved",
		storage.GroupFolder + "/a/b":        "reserved",
		storage.GroupFolder + "/..":         "reserved",
		storage.GroupFolder + "x/a":         "reserved",
		"_fencepost/../" + "_fencepost/tmp": "reserved",
	} {
		err := storage.ValidName(name)
		if !errors.Is(err, storage.ErrPermanent) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", name, err, want)
		}
	}
}

func TestValidPrefix(t *testing.T) {
	for _, prefix := range []string{"", "a", "a/b", storage.GroupFolder} {
		if err := storage.ValidPrefix(prefix); err != nil {
			t.Error(err)
		}
	}
	for _, prefix := range []string{"a/", "/", "..", "_fencepost", storage.OwnerName, storage.GroupFolder + "/a", storage.GroupFolder + "x"} {
		if err := storage.ValidPrefix(prefix); !errors.Is(err, storage.ErrPermanent) {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}

func TestShows(t *testing.T) {
	const state = storage.GroupFolder + "/7"
	for _, c := range []struct {
		prefix, name string
		want         bool
	}{
		{"", "a", true}, {"a", "a/b", true}, {"a", "b", false}, {"", "a//b", false}, {"", state, false}, {storage.GroupFolder, state, true},
		{storage.GroupFolder, storage.OwnerName, false}, {storage.GroupFolder, "a", false}, {storage.GroupFolder, storage.GroupFolder + "/tmp/x", false},
	} {
		if got := storage.Shows(c.prefix, c.name); got != c.want {
			t.Errorf("Shows(%q, %q) = %v", c.prefix, c.name, got)
		}
	}
}

func TestBelow(t *testing.T) {
	for _, c := range []struct {
		prefix, name string
		want         bool
	}{
		{"", "a", true}, {"a", "a", true}, {"a", "a/b", true}, {"a/b", "a/b/c", true},
		{"a", "ab", false}, {"a/b", "a/bc", false}, {"a/b", "a", false}, {"app", "app2/x", false}, {"A", "a", false},
	} {
		if got := storage.Below(c.prefix, c.name); got != c.want {
			t.Errorf("Below(%q, %q) = %v", c.prefix, c.name, got)
		}
	}
}
