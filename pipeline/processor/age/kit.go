package age

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"filippo.io/age"

	"github.com/fencepost/fencepost/pipeline/processor"
)

// addRecipient keeps a recipient and its text.
func (k *held) addRecipient(r age.Recipient, text string) {
	fields := strings.Fields(text)
	k.recipients = append(k.recipients, r)
	k.public = append(k.public, strings.Join(fields[:min(2, len(fields))], " ")) // type and key; what follows is a comment
}

// KitID implements processor.Keyed: a fingerprint of the recipients in their order, or, where there are only identities,
// of the recipients that belong to them. A passphrase has none, because one would help to guess it; nor have ssh identities
// without recipients.
func (p Processor) KitID() string {
	public := p.keys.public
	if len(public) == 0 {
		for _, id := range p.keys.identities {
			text, ok := publicOf(id)
			if !ok {
				return ""
			}
			public = append(public, text)
		}
	}
	if len(public) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(public, "\n")))
	return hex.EncodeToString(sum[:8])
}

// Opens implements processor.Keyed.
func (p Processor) Opens() bool { return len(p.keys.identities) > 0 }

// publicOf is the text of the recipient of an identity, if it tells.
func publicOf(id age.Identity) (string, bool) {
	var r fmt.Stringer
	switch id := id.(type) {
	case *age.X25519Identity:
		r = id.Recipient()
	case *age.HybridIdentity:
		r = id.Recipient()
	default:
		return "", false
	}
	return r.String(), true
}

var _ processor.Keyed = Processor{}
