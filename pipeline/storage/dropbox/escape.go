package dropbox

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

// headerSafe writes JSON so that it may stand in an HTTP header: whatever is no printable ASCII becomes \uXXXX, in two
// surrogates above U+FFFF. DEL is among it, since net/http refuses it. JSON has such characters in texts only.
func headerSafe(json string) string {
	if strings.IndexFunc(json, unsafe) < 0 {
		return json
	}
	var b strings.Builder
	for _, r := range json {
		if !unsafe(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

func unsafe(r rune) bool { return r >= 0x7f }
