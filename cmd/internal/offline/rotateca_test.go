package offline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/configs"
)

// TestRotateAuthority: after each step, and when it is done again, the files of all nodes fit together; a step that comes too
// early changes nothing; at the end nobody believes the former authority.
func TestRotateAuthority(t *testing.T) {
	dir := written(t, []string{"n1", "n2"}, "")
	former, err := openAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	fits := func(when string, authorities int) {
		t.Helper()
		for _, n := range []string{"n1", "n2"} {
			c, err := configs.LoadWith(filepath.Join(dir, n+".yaml"), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := CheckSecurity(c, time.Now()); err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}
		if list, err := ShowCerts(authorityFile(dir), time.Now()); err != nil || len(list) != authorities {
			t.Errorf("%s: authorities %+v, %v", when, list, err)
		}
		checkModes(t, dir)
	}
	early := func(step, want string) {
		t.Helper()
		if _, err := RotateAuthority(dir, step, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s too early: %v", step, err)
		}
	}
	do := func(step string, changed ...string) {
		t.Helper()
		done, err := RotateAuthority(dir, step, 0)
		if err != nil {
			t.Fatal(err)
		}
		var files []string
		for _, f := range done.Changed {
			files = append(files, filepath.Base(f))
		}
		if strings.Join(files, " ") != strings.Join(changed, " ") || done.Step != step || len(done.Certs) < 3 {
			t.Errorf("%s changed %v: %+v", step, files, done)
		}
	}

	early("turn", "is no step")
	early(RotateSign, "begin comes first")
	if err := os.WriteFile(filepath.Join(dir, "ca-next.key"), []byte(keyOf(t)), 0o600); err != nil { // a begin that was cut short
		t.Fatal(err)
	}
	do(RotateBegin, "ca.pem")
	fits("begun", 2)
	do(RotateBegin, "ca.pem")
	fits("begun again", 2)
	early(RotateFinish, "sign comes first")
	if _, err := IssueCert(dir, "shop", "n3", time.Hour); err != nil { // meanwhile the former one signs
		t.Fatal(err)
	}
	do(RotateSign, "n1.pem", "n2.pem", "n3.pem")
	fits("signed", 2)
	do(RotateSign, "n1.pem", "n2.pem", "n3.pem")
	fits("signed again", 2)
	do(RotateFinish, "ca.pem")
	fits("finished", 1)
	do(RotateFinish, "ca.pem")
	early(RotateSign, "begin comes first")
	text, err := os.ReadFile(filepath.Join(dir, "n1.pem"))
	if err != nil {
		t.Fatal(err)
	}
	if own, err := former.Signed(text); own || err != nil {
		t.Errorf("the former authority's: %t, %v", own, err)
	}
	if _, err := RenewCert(dir, "n1", time.Hour); err != nil {
		t.Errorf("the new one renews: %v", err)
	}
}

// keyOf is the key of an authority that nobody has.
func keyOf(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := NewAuthority(dir, "shop", time.Hour); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
