package dropbox

import (
	"encoding/hex"
	"slices"
	"strings"
)

// Names of objects and paths of Dropbox. Case does not count there, forms of Unicode are mixed up, some names are not
// kept, and a file and a folder cannot share one. So:
//
//   - a-z, 0-9, "_", "-" and, between two others, "." stand for themselves; every other byte is %xx;
//   - so does "." not, behind the first maxPiece/2 bytes of an element, and in notKept;
//   - what is longer than maxPiece goes on one folder further down: a piece that goes on ends with "=";
//   - a folder of the object's name ends with "+", so that it is never the name of a file.
//
// "Backups/2026.09/data" is "%42ackups+/2026.09+/data".
const (
	maxPiece   = 200 // characters; the service's limit is 255
	goesOn     = '='
	folderMark = '+'
)

// notKept are names that the service does not store, or that clients do not sync. Those that begin or end with a dot, or
// have a ~, are none that encode makes.
var notKept = []string{"desktop.ini", "thumbs.db"}

// encode is the path, below the root, of an object: relative, without a slash at an end.
func encode(name string) string {
	folders, file := "", name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		folders, file = encodeFolder(name[:i])+"/", name[i+1:]
	}
	return folders + encodeElement(file)
}

// encodeFolder is the path of the folder in which the objects below name are.
func encodeFolder(name string) string {
	elements := strings.Split(name, "/")
	for i, e := range elements {
		elements[i] = encodeElement(e) + string(folderMark)
	}
	return strings.Join(elements, "/")
}

func encodeElement(e string) string {
	whole := slices.Contains(notKept, e)
	var b strings.Builder
	n := 0 // characters of this piece
	for i := range len(e) {
		c := e[i]
		inner := i > 0 && i < len(e)-1 && e[i-1] != '.' && e[i+1] != '.'
		s := "%" + hex.EncodeToString([]byte{c})
		if plain(c) || c == '.' && inner && !whole && i < maxPiece/2 { // no dot in a piece but the first
			s = string(rune(c))
		}
		if n+len(s) > maxPiece {
			b.WriteString(string(goesOn) + "/")
			n = 0
		}
		b.WriteString(s)
		n += len(s)
	}
	return b.String()
}

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// decode is the name of the object at a path below the root. Of what encode would not have made it is not ok: that is no
// object of ours.
func decode(path string) (name string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		switch c := path[i]; c {
		case '%':
			if i+2 >= len(path) {
				return "", false
			}
			raw, err := hex.DecodeString(path[i+1 : i+3])
			if err != nil {
				return "", false
			}
			b.WriteByte(raw[0])
			i += 2
		case goesOn, folderMark:
			if i+1 >= len(path) || path[i+1] != '/' {
				return "", false
			}
			if c == folderMark {
				b.WriteByte('/')
			}
			i++
		default:
			b.WriteByte(c)
		}
	}
	name = b.String()
	return name, encode(name) == path
}
