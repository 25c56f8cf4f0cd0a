package accounts

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
)

// Cost is how much work a password is.
type Cost struct {
	Memory  uint32 // KiB
	Passes  uint32
	Threads uint8
}

// DefaultCost takes about a fifth of a second of a core and 64 MiB.
var DefaultCost = Cost{Memory: 64 << 10, Passes: 2, Threads: 1}

// maxCost bounds what a hash that was read may ask for.
var maxCost = Cost{Memory: 1 << 20, Passes: 64, Threads: 64}

// Lengths of passwords, in bytes.
const (
	MinPassword = 12
	MaxPassword = 1024
)

const (
	saltSize = 16
	hashSize = 32
)

// checkPassword says what is wrong with a new password.
func checkPassword(user, password string) error {
	switch {
	case len(password) < MinPassword:
		return fmt.Errorf("it is shorter than %d bytes: a few words are easy to remember", MinPassword)
	case len(password) > MaxPassword:
		return fmt.Errorf("it is longer than %d bytes", MaxPassword)
	case !utf8.ValidString(password):
		return errors.New("it is not UTF-8")
	case strings.Contains(strings.ToLower(password), strings.ToLower(user)):
		return errors.New("the user's name is in it")
	case distinct(password) < 5:
		return errors.New("it has fewer than five different characters")
	}
	return nil
}

func distinct(s string) int {
	seen := map[rune]bool{}
	for _, c := range s {
		seen[c] = true
	}
	return len(seen)
}

// hashPassword makes the text that is kept: $argon2id$v=19$m=...,t=...,p=...$salt$hash, as other programs write it.
func hashPassword(password string, c Cost) string {
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	hash := argon2.IDKey([]byte(password), salt, c.Passes, c.Memory, c.Threads, hashSize)
	enc := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, c.Memory, c.Passes, c.Threads, enc.EncodeToString(salt), enc.EncodeToString(hash))
}

// checkHash tells whether the password is the one of the hash, and at which cost that was found out.
func checkHash(password, kept string) (ok bool, c Cost, err error) {
	c, salt, hash, err := parseHash(kept)
	if err != nil {
		return false, c, err
	}
	got := argon2.IDKey([]byte(password), salt, c.Passes, c.Memory, c.Threads, uint32(len(hash)))
	return subtle.ConstantTimeCompare(got, hash) == 1, c, nil
}

var errHash = errors.New("a kept password cannot be read")

func parseHash(kept string) (c Cost, salt, hash []byte, err error) {
	parts := strings.Split(kept, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return c, nil, nil, errHash
	}
	var rest string
	if n, _ := fmt.Sscanf(parts[3]+" ", "m=%d,t=%d,p=%d%s", &c.Memory, &c.Passes, &c.Threads, &rest); n != 3 {
		return c, nil, nil, errHash
	}
	enc := base64.RawStdEncoding
	if salt, err = enc.DecodeString(parts[4]); err != nil || len(salt) < 8 {
		return c, nil, nil, errHash
	}
	if hash, err = enc.DecodeString(parts[5]); err != nil || len(hash) < 16 {
		return c, nil, nil, errHash
	}
	if c.Memory < 8 || c.Passes < 1 || c.Threads < 1 || c.Memory > maxCost.Memory || c.Passes > maxCost.Passes || c.Threads > maxCost.Threads {
		return c, nil, nil, errHash
	}
	return c, salt, hash, nil
}
