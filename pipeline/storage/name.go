package storage

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxName is the longest name of an object, in bytes.
	MaxName = 900
	// MaxElement is the longest element between two slashes, in bytes.
	MaxElement = 200
	// Reserved begins the first element of names that belong to this package and to implementations, in any case.
	Reserved = "_fencepost"
	// OwnerName is the name of the owner object, which can be put, read and deleted, and is never listed.
	OwnerName = Reserved + "/owner.json"
	// GroupFolder is where a group keeps what it needs to be made anew. What lies directly in it can be put, read and
	// deleted, and is listed when this very folder is asked for, and never otherwise.
	GroupFolder = Reserved + "/group"
)

// groupName is what the names in GroupFolder look like, case and length alike everywhere.
var groupName = regexp.MustCompile(`^` + GroupFolder + `/[a-z0-9][a-z0-9-]{0,62}$`)

// ValidName checks the name of an object: UTF-8, relative, elements separated by single slashes, none of them empty, "."
// or "..", without control characters and backslashes, at most MaxElement and MaxName bytes, and not reserved (OwnerName and
// names in GroupFolder excepted: 1 to 63 of a-z, 0-9, "-"). The error is ErrPermanent and quotes the name. Implementations
// call it first in every method.
func ValidName(name string) error {
	if name == OwnerName || groupName.MatchString(name) {
		return nil
	}
	if reason := badName(name); reason != "" {
		return fmt.Errorf("object name %.80q %s: %w", name, reason, ErrPermanent)
	}
	return nil
}

// ValidPrefix checks the prefix of a listing: empty, GroupFolder, or what ValidName accepts, the reserved names excepted.
func ValidPrefix(prefix string) error {
	if prefix == "" || prefix == GroupFolder {
		return nil
	}
	if reason := badName(prefix); reason != "" {
		return fmt.Errorf("prefix %.80q %s: %w", prefix, reason, ErrPermanent)
	}
	return nil
}

// Shows tells whether a listing of prefix shows what lies under name in an implementation: a name that is valid, below the
// prefix, and reserved only if it was asked for.
func Shows(prefix, name string) bool {
	if ValidName(name) != nil || IsReserved(name) && prefix != GroupFolder {
		return false
	}
	return Below(prefix, name)
}

// Below tells whether name is prefix, or lies below it.
func Below(prefix, name string) bool {
	if rest, ok := strings.CutPrefix(name, prefix); ok {
		return prefix == "" || rest == "" || rest[0] == '/'
	}
	return false
}

// IsReserved tells whether name lies in a reserved folder. Case is ignored, because some storages ignore it.
func IsReserved(name string) bool {
	return len(name) >= len(Reserved) && strings.EqualFold(name[:len(Reserved)], Reserved)
}

// badName returns what is wrong with name, or "".
func badName(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > MaxName:
		return fmt.Sprintf("is longer than %d bytes", MaxName)
	case !utf8.ValidString(name):
		return "is not UTF-8"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "contains a control character"
	case strings.ContainsRune(name, '\\'):
		return "contains a backslash"
	case IsReserved(name):
		return "is reserved"
	}
	for element := range strings.SplitSeq(name, "/") {
		switch {
		case element == "":
			return "has an empty element (slash at an end, or two in a row)"
		case element == "." || element == "..":
			return "has an element that is . or .."
		case len(element) > MaxElement:
			return fmt.Sprintf("has an element longer than %d bytes", MaxElement)
		}
	}
	return ""
}
