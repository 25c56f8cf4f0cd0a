package age_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	fage "filippo.io/age"
	"golang.org/x/crypto/ssh"

	"github.com/fencepost/fencepost/pipeline/processor/age"
)

// file writes a file of that mode and returns its path.
func file(t testing.TB, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// pair is a fresh key: the recipient's text and the identity's file.
type pair struct{ recipient, identity string }

func x25519(t testing.TB) pair {
	t.Helper()
	id, err := fage.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return pair{id.Recipient().String(), file(t, "# made by a test\n\n"+id.String()+"\n", 0o600)}
}

func sshPair(t testing.TB, private any, public any, passphrase string) pair {
	t.Helper()
	pub, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	var block *pem.Block
	if passphrase == "" {
		block, err = ssh.MarshalPrivateKey(private, "test")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "test", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	return pair{strings.TrimSpace(string(ssh.MarshalAuthorizedKey(pub))), file(t, string(pem.EncodeToMemory(block)), 0o600)}
}

func ed25519Pair(t testing.TB, passphrase string) pair {
	t.Helper()
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return sshPair(t, priv, pub, passphrase)
}

func rsaPair(t testing.TB) pair {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return sshPair(t, key, &key.PublicKey, "")
}

func load(t testing.TB, f age.Files) age.Processor {
	t.Helper()
	keys, err := age.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	return age.New(age.Options{Keys: keys})
}

func TestLoadRefuses(t *testing.T) {
	const hidden = "AGE-SECRET-KEY-1HUNTER2"
	good := x25519(t)
	for name, c := range map[string]struct {
		f    age.Files
		want string
	}{
		"nothing":                       {age.Files{}, "age has no key"},
		"passphrase and recipients":     {age.Files{Recipients: []string{good.recipient}, Passphrase: file(t, "correct horse battery", 0o600)}, "exclude each other"},
		"passphrase and a file":         {age.Files{RecipientsFile: "/x", Passphrase: "/y"}, "exclude each other"},
		"recipient is a word":           {age.Files{Recipients: []string{good.recipient, "hunter2"}}, "recipient 2: is no age or ssh public key"},
		"recipient is secret":           {age.Files{Recipients: []string{hidden}}, "recipient 1: is a secret key"},
		"recipient is two":              {age.Files{Recipients: []string{good.recipient + "\n" + good.recipient}}, "recipient 1: is no age"},
		"recipient is a broken ssh":     {age.Files{Recipients: []string{"ssh-ed25519 AAAAhunter2"}}, "recipient 1: is no ssh-ed25519"},
		"recipients file is missing":    {age.Files{RecipientsFile: "/does/not/exist"}, "read the recipients: open /does/not/exist"},
		"recipients file is empty":      {age.Files{RecipientsFile: file(t, "# none\n\n", 0o644)}, "holds no key"},
		"recipients file is wrong":      {age.Files{RecipientsFile: file(t, "# one\n"+good.recipient+"\nhunter2\n", 0o644)}, "line 3: is no age"},
		"identity is missing":           {age.Files{Identity: "/does/not/exist"}, "read the identity: open"},
		"identity is a directory":       {age.Files{Identity: t.TempDir()}, "is a directory"},
		"identity is open to all":       {age.Files{Identity: file(t, hidden, 0o604)}, "can be read by everyone (mode 0604): chmod 600"},
		"identity is broken":            {age.Files{Identity: file(t, hidden, 0o600)}, "is no file of age identities"},
		"identity is public":            {age.Files{Identity: file(t, good.recipient, 0o600)}, "is no file of age identities"},
		"identity is empty":             {age.Files{Identity: file(t, "", 0o600)}, "is no file of age identities"},
		"ssh identity is broken":        {age.Files{Identity: file(t, "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n", 0o600)}, "is no ssh-ed25519 or ssh-rsa private key"},
		"ssh identity has a passphrase": {age.Files{Identity: ed25519Pair(t, "hunter2").identity}, "the ssh key has a passphrase"},
		"passphrase is short":           {age.Files{Passphrase: file(t, "hunter2", 0o600)}, "has 7 bytes, want at least 12"},
		"passphrase is on line 2":       {age.Files{Passphrase: file(t, "\nhunter2hunter2hunter2", 0o600)}, "has 0 bytes"},
		"passphrase is open to all":     {age.Files{Passphrase: file(t, "hunter2hunter2", 0o604)}, "can be read by everyone"},
		"a file without end":            {age.Files{Identity: file(t, strings.Repeat("hunter2\n", 1<<18), 0o600)}, "is larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := age.Load(c.f)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q in it", err, c.want)
			}
			if strings.Contains(strings.ToLower(err.Error()), "hunter2") {
				t.Errorf("a secret in %q", err)
			}
		})
	}
}

func TestKeysDoNotPrint(t *testing.T) {
	keys, err := age.Load(age.Files{Passphrase: file(t, "correct horse battery\n", 0o600)})
	if err != nil {
		t.Fatal(err)
	}
	p := age.New(age.Options{Keys: keys})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for _, value := range []any{keys, &keys, p, &p, []any{p}, age.Options{Keys: keys}} {
			text := fmt.Sprintf(verb, value)
			if strings.Contains(text, "horse") || strings.Contains(text, fmt.Sprintf("%x", "horse")) || strings.Contains(text, fmt.Sprint([]byte("horse"))[1:20]) {
				t.Errorf("%s of %T shows %q", verb, value, text)
			}
		}
	}
}
