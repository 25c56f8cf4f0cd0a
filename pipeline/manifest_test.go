package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage/mem"
)

func goodManifest() Manifest {
	sum := strings.Repeat("ab", 32)
	return Manifest{
		Format: 1, Backup: "b1", Token: 7, Database: "shop", Source: source.Info{Kind: "fake", AsOf: noon}, AsOf: noon, Created: noon,
		Objects: []Object{
			{Name: source.PartData, RawBytes: 10, RawSHA256: sum, StoredBytes: 5, StoredSHA256: sum},
			{Name: source.PartDatabase, RawBytes: 3, RawSHA256: sum, StoredBytes: 2, StoredSHA256: sum},
		},
		Processors: []string{"zstd", "age"}, Kit: "0123456789abcdef", Writer: "v1",
	}
}

func TestManifestRoundTrip(t *testing.T) {
	for _, m := range []Manifest{goodManifest(), Tombstone("b1", 7, "its node died", noon)} {
		data, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeManifest(iotest.OneByteReader(bytes.NewReader(data)))
		if err != nil || !reflect.DeepEqual(back, m) {
			t.Errorf("%+v, %v; want %+v", back, err, m)
		}
	}
	m := goodManifest()
	if m.RawBytes() != 13 || m.StoredBytes() != 7 {
		t.Errorf("sums: %d, %d", m.RawBytes(), m.StoredBytes())
	}
}

func TestManifestIsStrict(t *testing.T) {
	for name, edit := range map[string]func(*Manifest){
		"format 0":       func(m *Manifest) { m.Format = 0 },
		"token 0":        func(m *Manifest) { m.Token = 0 },
		"token 2^53":     func(m *Manifest) { m.Token = 1 << 53 },
		"backup":         func(m *Manifest) { m.Backup = "../b" },
		"no objects":     func(m *Manifest) { m.Objects = nil },
		"no data":        func(m *Manifest) { m.Objects = m.Objects[1:] },
		"twice":          func(m *Manifest) { m.Objects = append(m.Objects, m.Objects[0]) },
		"kit":            func(m *Manifest) { m.Kit = strings.Repeat("k", 300) },
		"slash":          func(m *Manifest) { m.Objects[1].Name = "a/b" },
		"itself":         func(m *Manifest) { m.Objects[1].Name = manifestName },
		"negative":       func(m *Manifest) { m.Objects[0].RawBytes = -1 },
		"hash":           func(m *Manifest) { m.Objects[0].StoredSHA256 = "ab" },
		"many objects":   func(m *Manifest) { m.Objects = make([]Object, maxObjects+1) },
		"many filters":   func(m *Manifest) { m.Processors = make([]string, maxProcessors+1) },
		"void with data": func(m *Manifest) { m.Void = true },
	} {
		m := goodManifest()
		edit(&m)
		if _, err := m.Encode(); err == nil {
			t.Errorf("%s: encoded", name)
		}
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeManifest(bytes.NewReader(data)); err == nil {
			t.Errorf("%s: decoded", name)
		}
	}
	good, _ := goodManifest().Encode()
	for name, text := range map[string]string{
		"newer":    strings.Replace(string(good), `"format": 1`, `"format": 3`, 1),
		"unknown":  strings.Replace(string(good), `"format": 1`, `"format": 1, "extra": 1`, 1),
		"trailing": string(good) + "{}",
		"cut":      string(good[:len(good)/2]),
		"empty":    "",
		"huge":     string(good) + strings.Repeat(" ", MaxManifest),
	} {
		if _, err := DecodeManifest(strings.NewReader(text)); err == nil {
			t.Errorf("%s: decoded", name)
		}
	}
	if _, err := DecodeManifest(iotest.ErrReader(errBoom)); !errors.Is(err, errBoom) {
		t.Errorf("failing reader: %v", err)
	}
}

func FuzzDecodeManifest(f *testing.F) {
	good, _ := goodManifest().Encode()
	tomb, _ := Tombstone("b1", 7, "x", noon).Encode()
	f.Add(good)
	f.Add(tomb)
	f.Add([]byte(`{"format":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeManifest(bytes.NewReader(data))
		if err != nil {
			return
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatalf("what was decoded cannot be encoded: %v", err)
		}
		if _, err := DecodeManifest(bytes.NewReader(again)); err != nil {
			t.Fatalf("what was encoded cannot be decoded: %v", err)
		}
	})
}

func TestPaths(t *testing.T) {
	small, large := ObjectPath("b1", 9, "data"), ObjectPath("b1", 1_767_225_600_000_000, "data")
	if !(small < large) {
		t.Errorf("%q does not sort before %q", small, large)
	}
	for _, token := range []uint64{0, 9, maxToken - 1} {
		b, got, part, ok := ParsePath(ManifestPath("b1", token))
		if !ok || b != "b1" || got != token || part != manifestName {
			t.Errorf("token %d: %s %d %s %v", token, b, got, part, ok)
		}
	}
	for _, bad := range []string{
		"", "b1", "b1/7/data", "b1/0000000000000007", "b1/0000000000000007/", "b1/0000000000000007/a/b", "B/0000000000000007/data",
		"b1/9999999999999999/data", "b1/+000000000000007/data", "_fencepost/owner.json", "b1/0000000000000007/..",
	} {
		if _, _, _, ok := ParsePath(bad); ok {
			t.Errorf("%q accepted", bad)
		}
	}
}

func TestNeeded(t *testing.T) {
	for _, c := range []struct {
		require string
		total   int
		want    int
		ok      bool
	}{
		{"", 3, 3, true}, {"all", 2, 2, true}, {"any", 2, 1, true}, {"1", 2, 1, true}, {"2", 2, 2, true},
		{"3", 2, 0, false}, {"0", 2, 0, false}, {"-1", 2, 0, false}, {"most", 2, 0, false}, {"any", 0, 0, true},
	} {
		if got, err := Needed(c.require, c.total); got != c.want || (err == nil) != c.ok {
			t.Errorf("%q of %d: %d, %v", c.require, c.total, got, err)
		}
	}
}

func TestNewID(t *testing.T) {
	var ids []string
	for i := range 200 {
		id := NewID(noon.Add(time.Duration(i) * time.Millisecond))
		if len(id) != 26 || strings.Trim(id, "0123456789abcdefghijklmnopqrstuv") != "" {
			t.Fatalf("id %q", id)
		}
		ids = append(ids, id)
	}
	if !slices.IsSorted(ids) {
		t.Error("ids do not sort by time")
	}
	if a, b := NewID(noon), NewID(noon); a == b {
		t.Error("two ids of one moment are equal")
	}
}

// The end of input is passed on only when length and hash fit.
func TestChecked(t *testing.T) {
	content := patternOf(10_000)
	m := newMeter(io.Discard, nil, nil)
	if _, err := m.Write(content); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		r  io.Reader
		ok bool
	}{
		"whole":         {bytes.NewReader(content), true},
		"data with EOF": {iotest.DataErrReader(bytes.NewReader(content)), true},
		"small reads":   {iotest.OneByteReader(bytes.NewReader(content)), true},
		"cut":           {bytes.NewReader(content[:9_999]), false},
		"empty":         {bytes.NewReader(nil), false},
		"longer":        {io.MultiReader(bytes.NewReader(content), strings.NewReader("x")), false},
		"changed":       {bytes.NewReader(flip(slices.Clone(content))), false},
		"error":         {io.MultiReader(bytes.NewReader(content[:500]), iotest.ErrReader(errBoom)), false},
	} {
		r := newChecked(c.r, "part", int64(len(content)), m.hex(), nil, nil)
		got, err := io.ReadAll(r)
		if (err == nil) != c.ok || c.ok && !bytes.Equal(got, content) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if _, again := r.Read(make([]byte, 1)); (again == io.EOF) != c.ok {
			t.Errorf("%s: read after the end: %v", name, again)
		}
	}
}

func TestEntombAndVoid(t *testing.T) {
	st := mem.New()
	ctx := t.Context()
	m := goodManifest()
	tomb := Tombstone(m.Backup, m.Token, "test", noon)
	data, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := putManifest(ctx, st, m, data); err != nil {
		t.Fatal(err)
	}
	if err := putManifest(ctx, st, m, data); err != nil {
		t.Errorf("the same manifest again: %v", err)
	}
	other := m
	other.Writer = "v2"
	otherData, _ := other.Encode()
	if err := putManifest(ctx, st, other, otherData); err == nil {
		t.Error("another manifest in its place")
	}
	if real, err := entomb(ctx, st, tomb); err != nil || real == nil || real.Writer != "v1" {
		t.Errorf("entomb a real one: %+v, %v", real, err)
	}
	for range 2 {
		if err := voidManifest(ctx, st, tomb); err != nil {
			t.Fatal(err)
		}
		if real, err := entomb(ctx, st, tomb); err != nil || real != nil {
			t.Errorf("entomb a void one: %+v, %v", real, err)
		}
	}
	if err := putManifest(ctx, st, m, data); !fenced(err) {
		t.Errorf("a manifest over its tombstone: %v", err)
	}
}
