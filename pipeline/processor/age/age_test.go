package age_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/processor/age"
	"github.com/fencepost/fencepost/pipeline/processor/processortest"
)

func TestConformance(t *testing.T) {
	key := x25519(t)
	processortest.Run(t, processortest.Subject{
		Processor: load(t, age.Files{Recipients: []string{key.recipient}, Identity: key.identity}),
		Memory:    64 << 20,
		Vague:     true,
	})
}

func TestEveryKindOfKey(t *testing.T) {
	phrase := file(t, "correct horse battery\nnot this line\n", 0o600)
	content := processortest.Sample(200_000)
	for name, f := range map[string]age.Files{
		"x25519":      filesOf(x25519(t)),
		"ssh-ed25519": filesOf(ed25519Pair(t, "")),
		"ssh-rsa":     filesOf(rsaPair(t)),
		"passphrase":  {Passphrase: phrase},
	} {
		p := load(t, f)
		stored := processortest.Wrap(t, p, content)
		got, err := processortest.Unwrap(p, iotest.HalfReader(bytes.NewReader(stored)))
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if bytes.Contains(stored, content[1000:1100]) {
			t.Errorf("%s: the content can be seen", name)
		}
	}
}

func filesOf(k pair) age.Files {
	return age.Files{Recipients: []string{k.recipient}, Identity: k.identity}
}

func TestEachOfSeveralRecipientsOpensIt(t *testing.T) {
	a, b, c, d := x25519(t), ed25519Pair(t, ""), rsaPair(t), x25519(t)
	list := file(t, "# the others\n"+b.recipient+"\n\n"+c.recipient+"\n", 0o644)
	stored := processortest.Wrap(t, load(t, age.Files{Recipients: []string{a.recipient}, RecipientsFile: list}), []byte("content"))
	for i, identity := range []string{a.identity, b.identity, c.identity} {
		got, err := processortest.Unwrap(load(t, age.Files{Identity: identity}), bytes.NewReader(stored))
		if err != nil || string(got) != "content" {
			t.Errorf("key %d: %q, %v", i, got, err)
		}
	}
	_, err := load(t, age.Files{Identity: d.identity}).Unwrap(bytes.NewReader(stored))
	if !errors.Is(err, processor.ErrKey) {
		t.Errorf("a key that it was not encrypted to: %v", err)
	}
}

// A wrong key is known when Unwrap returns: nothing was read beyond the header's buffer, no content was seen.
func TestAWrongKeyIsFoundInTheHeader(t *testing.T) {
	phrase := func(text string) age.Files { return age.Files{Passphrase: file(t, text, 0o600)} }
	content := processortest.Sample(4 << 20)
	for name, c := range map[string]struct{ with, other age.Files }{
		"another x25519":           {filesOf(x25519(t)), filesOf(x25519(t))},
		"another ssh key":          {filesOf(ed25519Pair(t, "")), filesOf(ed25519Pair(t, ""))},
		"another rsa key":          {filesOf(rsaPair(t)), filesOf(rsaPair(t))},
		"a passphrase for a key":   {filesOf(x25519(t)), phrase("correct horse battery")},
		"a key for a passphrase":   {phrase("correct horse battery"), filesOf(x25519(t))},
		"another passphrase":       {phrase("correct horse battery"), phrase("correct horse battery?")},
		"an identity is not there": {filesOf(x25519(t)), age.Files{Recipients: []string{x25519(t).recipient}}},
	} {
		src := bytes.NewReader(processortest.Wrap(t, load(t, c.with), content))
		r, err := load(t, c.other).Unwrap(src)
		if !errors.Is(err, processor.ErrKey) || errors.Is(err, processor.ErrCorrupt) || r != nil {
			t.Errorf("%s: %v, want %v", name, err, processor.ErrKey)
		}
		if read := int(src.Size()) - src.Len(); read > 8<<10 {
			t.Errorf("%s: %d bytes were read for it", name, read)
		}
	}
}

func TestWithoutRecipientsNothingIsWritten(t *testing.T) {
	var b bytes.Buffer
	if _, err := load(t, age.Files{Identity: x25519(t).identity}).Wrap(&b); !errors.Is(err, processor.ErrKey) || b.Len() > 0 {
		t.Errorf("%d bytes, %v", b.Len(), err)
	}
}

// sealed is a stream of n bytes of content, and the length of its header.
func sealed(t *testing.T, p processor.Processor, n int) (stored []byte, header int) {
	t.Helper()
	stored = processortest.Wrap(t, p, processortest.Sample(n))
	mac := bytes.Index(stored, []byte("\n--- ")) + 1
	return stored, mac + bytes.IndexByte(stored[mac:], '\n') + 1 + 16
}

const chunk = 64<<10 + 16

func TestDamageInTheChunks(t *testing.T) {
	p := load(t, filesOf(x25519(t)))
	stored, h := sealed(t, p, 5*64<<10+1000) // five whole chunks and a short one
	full, fh := sealed(t, p, 3*64<<10)       // the last one is whole
	part := func(b []byte, h, from, to int) []byte { return b[h+from*chunk : min(h+to*chunk, len(b))] }
	flipped := bytes.Clone(stored)
	flipped[h+2*chunk+77] ^= 1
	for name, c := range map[string]struct {
		bad  []byte
		want error
	}{
		"cut exactly at a border":       {stored[:h+3*chunk], processor.ErrTruncated},
		"the last chunk is gone":        {stored[:h+5*chunk], processor.ErrTruncated},
		"the whole last chunk is gone":  {full[:fh+2*chunk], processor.ErrTruncated},
		"nothing but the header":        {stored[:h], processor.ErrTruncated},
		"the header without its nonce":  {stored[:h-16], processor.ErrTruncated},
		"cut within the last chunk":     {stored[:len(stored)-1], processor.ErrTruncated},
		"cut to the length of a tag":    {stored[:h+5*chunk+16], processor.ErrTruncated},
		"one bit":                       {flipped, processor.ErrCorrupt},
		"swapped chunks":                {slices.Concat(stored[:h], part(stored, h, 1, 2), part(stored, h, 0, 1), part(stored, h, 2, 6)), processor.ErrCorrupt},
		"a chunk twice":                 {slices.Concat(stored[:h+2*chunk], part(stored, h, 1, 6)), processor.ErrCorrupt},
		"a chunk left out":              {slices.Concat(stored[:h+2*chunk], part(stored, h, 3, 6)), processor.ErrCorrupt},
		"the last chunk alone":          {slices.Concat(stored[:h], part(stored, h, 5, 6)), processor.ErrCorrupt},
		"chunks of another stream":      {slices.Concat(stored[:h+3*chunk], part(full, fh, 0, 3)), processor.ErrCorrupt},
		"bytes after a whole chunk":     {append(bytes.Clone(full), 'x'), processor.ErrTrailing},
		"much after a whole chunk":      {append(bytes.Clone(full), make([]byte, 3*chunk)...), processor.ErrTrailing},
		"a stream after a whole chunk":  {slices.Concat(full, stored), processor.ErrTrailing},
		"a byte after a short chunk":    {append(bytes.Clone(stored), 'x'), processor.ErrCorrupt},
		"a stream after a short chunk":  {slices.Concat(stored, full), processor.ErrCorrupt},
		"the header of another stream":  {slices.Concat(full[:fh], stored[h:]), processor.ErrCorrupt},
		"an armored file":               {[]byte("-----BEGIN AGE ENCRYPTED FILE-----\nYWdl\n"), processor.ErrCorrupt},
		"a header without end":          {[]byte("age-encryption.org/v1\n" + strings.Repeat("-> X\nYWdl\n", 1<<18)), processor.ErrCorrupt},
		"a line without end":            {[]byte("age-encryption.org/v1\n-> " + strings.Repeat("x", 2<<20)), processor.ErrCorrupt},
		"the first line and then words": {[]byte("age-encryption.org/v1\nhello\n--- x\n" + strings.Repeat("n", 16)), processor.ErrCorrupt},
	} {
		got, err := processortest.Unwrap(p, bytes.NewReader(c.bad))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %d bytes, %v, want %v", name, len(got), err, c.want)
		}
		if !bytes.HasPrefix(processortest.Sample(5*64<<10+1000), got) && !bytes.HasPrefix(processortest.Sample(3*64<<10), got) {
			t.Errorf("%s: bytes were handed out that were never written", name)
		}
	}
}

func TestAChangedHeaderNeverOpens(t *testing.T) {
	p := load(t, filesOf(x25519(t)))
	stored, h := sealed(t, p, 1000)
	keys := 0
	for at := range h {
		bad := bytes.Clone(stored)
		bad[at] ^= 1
		_, err := processortest.Unwrap(p, bytes.NewReader(bad))
		if !errors.Is(err, processor.ErrCorrupt) && !errors.Is(err, processor.ErrTruncated) && !errors.Is(err, processor.ErrKey) {
			t.Errorf("byte %d of %d: %v", at, h, err)
		}
		if errors.Is(err, processor.ErrKey) {
			keys++
		}
	}
	if keys > 120 { // the wrapped key (43 characters) and its ephemeral share (43)
		t.Errorf("%d of %d bytes were called a wrong key", keys, h)
	}
}
