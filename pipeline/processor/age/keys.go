package age

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"golang.org/x/crypto/ssh"
)

const (
	// MinPassphrase is the shortest passphrase, in bytes, that is accepted.
	MinPassphrase = 12
	// maxKeyFile bounds, in bytes, what is read of a file of keys.
	maxKeyFile = 1 << 20
	// writeWork and readWork are scrypt's work factors (2^n): memory is 1 KiB times that.
	writeWork, readWork = 16, 18
)

// Files say where keys are. A Passphrase excludes Recipients and RecipientsFile, because the format lets a passphrase be
// an object's only key. All empty is an error: such a processor could do nothing.
type Files struct {
	// Recipients are public keys: age1…, or lines of ssh public keys (ssh-ed25519 or ssh-rsa).
	Recipients []string
	// RecipientsFile holds one such key a line; empty lines and lines that begin with # are passed over.
	RecipientsFile string
	// Identity is a file of secret keys: AGE-SECRET-KEY lines, or an ssh private key without a passphrase.
	Identity string
	// Passphrase is a file whose first line is a passphrase of at least MinPassphrase bytes.
	Passphrase string
}

// Keys are what encrypts (may be empty: nothing can be written) and what decrypts (may be empty: nothing can be read).
// They do not print, neither alone nor within other values.
type Keys struct{ *held }

// held stands behind a pointer because fmt shows the unexported fields of a struct within a struct, whatever their
// methods, and stops at a pointer.
type held struct {
	recipients []age.Recipient
	identities []age.Identity
	public     []string // texts of the recipients, in order, without comments
}

// String hides the keys.
func (Keys) String() string { return "age keys" }

// Format makes every verb print String.
func (k Keys) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, k.String()) }

// Load reads the files, which must not be accessible to everyone where they hold secrets. It may block on them. Errors
// name the file and the line, never its content.
func Load(f Files) (Keys, error) {
	if f.Passphrase != "" && (len(f.Recipients) > 0 || f.RecipientsFile != "") {
		return Keys{}, errors.New("a passphrase and recipients exclude each other: the format lets a passphrase be the only key")
	}
	k := Keys{held: new(held)}
	for i, text := range f.Recipients {
		r, err := parseRecipient(text)
		if err != nil {
			return Keys{}, fmt.Errorf("recipient %d: %w", i+1, err)
		}
		k.addRecipient(r, text)
	}
	for _, load := range []struct {
		path string
		add  func(string) error
	}{{f.RecipientsFile, k.addRecipients}, {f.Identity, k.addIdentities}, {f.Passphrase, k.addPassphrase}} {
		if load.path == "" {
			continue
		}
		if err := load.add(load.path); err != nil {
			return Keys{}, err
		}
	}
	if len(k.recipients) == 0 && len(k.identities) == 0 {
		return Keys{}, errors.New("age has no key: give recipients, an identity file, or a passphrase file")
	}
	return k, nil
}

func (k *held) addRecipients(path string) error {
	text, err := readFile(path, false)
	if err != nil {
		return fmt.Errorf("read the recipients: %w", err)
	}
	found := false
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxKeyFile)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		r, err := parseRecipient(line)
		if err != nil {
			return fmt.Errorf("recipients file %s, line %d: %w", path, n, err)
		}
		k.addRecipient(r, line)
		found = true
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the recipients file %s: %w", path, err)
	}
	if !found {
		return fmt.Errorf("recipients file %s holds no key", path)
	}
	return nil
}

// parseRecipient never repeats the text: somebody may have put the secret key there.
func parseRecipient(text string) (age.Recipient, error) {
	switch {
	case strings.HasPrefix(text, "AGE-SECRET-KEY-"):
		return nil, errors.New("is a secret key: a recipient is the public one, which begins with age1")
	case strings.HasPrefix(text, "ssh-"):
		r, err := agessh.ParseRecipient(text)
		if err != nil {
			return nil, errors.New("is no ssh-ed25519 or ssh-rsa public key")
		}
		return r, nil
	}
	rs, err := age.ParseRecipients(strings.NewReader(text))
	if err != nil || len(rs) != 1 {
		return nil, errors.New("is no age or ssh public key")
	}
	return rs[0], nil
}

func (k *held) addIdentities(path string) error {
	text, err := readFile(path, true)
	if err != nil {
		return fmt.Errorf("read the identity: %w", err)
	}
	ids, err := parseIdentities(text)
	if err != nil {
		return fmt.Errorf("identity file %s: %w", path, err)
	}
	k.identities = append(k.identities, ids...)
	return nil
}

func parseIdentities(text []byte) ([]age.Identity, error) {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("-----BEGIN")) {
		id, err := agessh.ParseIdentity(text)
		var locked *ssh.PassphraseMissingError
		switch {
		case errors.As(err, &locked):
			return nil, errors.New("the ssh key has a passphrase, and nobody is there to be asked: use a key without one, or an age key")
		case err != nil:
			return nil, errors.New("is no ssh-ed25519 or ssh-rsa private key")
		}
		return []age.Identity{id}, nil
	}
	ids, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil {
		return nil, errors.New("is no file of age identities (lines that begin with AGE-SECRET-KEY-)")
	}
	return ids, nil
}

func (k *held) addPassphrase(path string) error {
	text, err := readFile(path, true)
	if err != nil {
		return fmt.Errorf("read the passphrase: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	line = strings.TrimSuffix(line, "\r")
	if len(line) < MinPassphrase {
		return fmt.Errorf("passphrase file %s: its first line has %d bytes, want at least %d", path, len(line), MinPassphrase)
	}
	if err := k.addPhrase(line); err != nil {
		return fmt.Errorf("passphrase file %s: %w", path, err)
	}
	return nil
}

// FromPassphrase are the keys of a passphrase that a person has typed.
func FromPassphrase(text string) (Keys, error) {
	if len(text) < MinPassphrase {
		return Keys{}, fmt.Errorf("the passphrase has %d bytes, want at least %d", len(text), MinPassphrase)
	}
	k := Keys{held: new(held)}
	return k, k.addPhrase(text)
}

func (k *held) addPhrase(text string) error {
	r, err := age.NewScryptRecipient(text)
	if err != nil {
		return err
	}
	r.SetWorkFactor(writeWork)
	id, err := age.NewScryptIdentity(text)
	if err != nil {
		return err
	}
	id.SetMaxWorkFactor(readWork)
	k.recipients = append(k.recipients, r)
	k.identities = append(k.identities, id)
	return nil
}

// readFile reads a file of keys; one with secrets must not be open to everyone.
func readFile(path string, secret bool) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory", path)
	case secret && exposed(info.Mode()):
		return nil, fmt.Errorf("%s can be read by everyone (mode %04o): chmod 600 it", path, info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err == nil && len(text) > maxKeyFile {
		err = fmt.Errorf("%s is larger than %d bytes: no file of keys is", path, maxKeyFile)
	}
	return text, err
}
