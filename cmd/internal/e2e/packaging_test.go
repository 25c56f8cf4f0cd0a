package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sh runs a program in the top folder of the tree and gives what it printed.
func sh(t *testing.T, env []string, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Env = "../../..", append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestDebianPackage: the package is made, installed into another root and removed again; what it brought works there, and
// the home and the configuration stay.
func TestDebianPackage(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Fatal("dpkg-deb is missing: a Debian package is made on Debian")
	}
	root, out := t.TempDir(), t.TempDir()
	env := []string{"FENCEPOST_VERSION=v1.2.3-4-gabcdef0", "LEVEL=0"}
	arch := sh(t, nil, "dpkg", "--print-architecture")
	file := sh(t, env, ".ci/deb", filepath.Dir(daemon), out)
	if want := filepath.Join(out, "fencepost_1.2.3-4-gabcdef0_"+arch+".deb"); file != want {
		t.Fatalf("%s, want %s", file, want)
	}
	if owners := sh(t, nil, "dpkg-deb", "-c", file); strings.Contains(owners, "/tmp") || regexp.MustCompile(`(?m)^\S+ (?:[^r]|r[^o])`).MatchString(owners) {
		t.Errorf("all belongs to root:\n%s", owners)
	}
	for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	dpkg := func(args ...string) string {
		return sh(t, nil, "dpkg", append([]string{"--root=" + root, "--force-not-root", "--force-depends", "--force-script-chrootless", "--log=/dev/null"}, args...)...)
	}
	dpkg("-i", file)
	for _, path := range []string{
		"usr/bin/fencepostd", "usr/bin/fencepost", "lib/systemd/system/fencepostd.service", "etc/fencepost", "usr/share/doc/fencepost/node.example.yaml", "usr/share/doc/fencepost/settings.example.yaml",
		"usr/share/man/man1/fencepost.1.gz", "usr/share/man/man1/fencepost-backup-create.1.gz", "usr/share/bash-completion/completions/fencepost",
		"usr/share/zsh/vendor-completions/_fencepost", "usr/share/fish/vendor_completions.d/fencepost.fish",
	} {
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			t.Error(err)
		}
	}
	unit, err := os.ReadFile(filepath.Join(root, "lib/systemd/system/fencepostd.service"))
	if err != nil || !strings.Contains(string(unit), "ExecStart=/usr/bin/fencepostd --config /etc/fencepost/node.yaml") || strings.Contains(string(unit), "/usr/local") {
		t.Errorf("%v: %s", err, unit)
	}
	if got := sh(t, nil, filepath.Join(root, "usr/bin/fencepostd"), "--config", filepath.Join(root, "usr/share/doc/fencepost/node.example.yaml"), "--version"); !strings.HasPrefix(got, "fencepostd ") {
		t.Error(got)
	}
	config := filepath.Join(root, "etc/fencepost/node.yaml")
	if err := os.WriteFile(config, []byte("node: n1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, nil, filepath.Join(root, "usr/bin/fencepostd"), "--config", config, "--check-config"); !strings.HasSuffix(got, "node.yaml: ok") {
		t.Error(got)
	}
	dpkg("--purge", "fencepost")
	if _, err := os.Stat(filepath.Join(root, "usr/bin/fencepostd")); err == nil {
		t.Error("it is still there")
	}
	if _, err := os.Stat(config); err != nil {
		t.Errorf("the configuration is gone: %v", err)
	}
}

// TestInstall: what make install brings into another root is where programs below /usr/local look for it.
func TestInstall(t *testing.T) {
	root := t.TempDir()
	sh(t, []string{"DESTDIR=" + root}, ".ci/install", filepath.Dir(daemon))
	for _, path := range []string{
		"bin/fencepostd", "bin/fencepost", "share/man/man1/fencepost-upgrade-finalize.1.gz", "share/doc/fencepost/settings.example.yaml",
		"share/bash-completion/completions/fencepost", "share/zsh/site-functions/_fencepost", "share/fish/vendor_completions.d/fencepost.fish",
	} {
		if _, err := os.Stat(filepath.Join(root, "usr/local", path)); err != nil {
			t.Error(err)
		}
	}
	unit, err := os.ReadFile(filepath.Join(root, "etc/systemd/system/fencepostd.service"))
	if err != nil || !strings.Contains(string(unit), "ExecStart=/usr/local/bin/fencepostd --config /etc/fencepost/node.yaml") {
		t.Errorf("%v: %s", err, unit)
	}
}

// TestUnit: what a node does not need is taken from it, and systemd understands the unit.
func TestUnit(t *testing.T) {
	text, err := os.ReadFile("../../../configs/fencepostd.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"NoNewPrivileges=yes", "CapabilityBoundingSet=\n", "ProtectSystem=full", "PrivateDevices=yes", "SystemCallFilter=@system-service", "RestrictNamespaces=yes",
		"UMask=0077", "KillMode=mixed", "RestartPreventExitStatus=2 5 6", "Type=notify", "ExecReload=",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s", want)
		}
	}
	dir := t.TempDir()
	for _, program := range []string{"fencepostd", "fencepost"} { // systemd looks whether they are there
		text = []byte(strings.ReplaceAll(string(text), "/usr/local/bin/"+program+" ", filepath.Join(filepath.Dir(daemon), program)+" "))
	}
	unit := filepath.Join(dir, "fencepostd.service")
	if err := os.WriteFile(unit, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		return // not a machine with systemd: the text was looked at
	}
	if out := sh(t, nil, "systemd-analyze", "verify", "--man=no", unit); strings.Contains(out, unit) {
		t.Error(out)
	}
}

// TestVersionComesFromGit, or from whoever packs a tree without it.
func TestVersionComesFromGit(t *testing.T) {
	if got := sh(t, []string{"FENCEPOST_VERSION=v9.8.7"}, ".ci/version"); got != "v9.8.7" {
		t.Error(got)
	}
	if got := sh(t, nil, ".ci/version"); !regexp.MustCompile(`^(v\d+\.\d+\.\d+(-\d+-g[0-9a-f]+)?|0\.0\.0-g[0-9a-f]+|unknown)(-dirty)?$`).MatchString(got) {
		t.Error(got)
	}
}

// TestImage: the Dockerfile builds what there is, keeps the home outside, and does not run as root.
func TestImage(t *testing.T) {
	text, err := os.ReadFile("../../../configs/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"USER fencepost", "VOLUME /var/lib/fencepost", "./cmd/fencepostd ./cmd/fencepost", "postgresql-client", "HEALTHCHECK"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s", want)
		}
	}
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)
	if version == nil || !strings.Contains(string(text), "FROM golang:"+string(version[1])+"-") {
		t.Errorf("the image is built by another Go than go.mod wants: %s", version)
	}
}
