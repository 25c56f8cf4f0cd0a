package offline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fencepost/fencepost/configs"
)

// examineSecrets looks at the modes of all files with a secret in them, those that only the group's settings name, too, and at
// the certificate.
func examineSecrets(c *configs.Config, group *configs.Settings) []Exam {
	var exams []Exam
	for _, f := range secretFiles(c, group) {
		e := Exam{What: "key file", About: f.key, State: ExamOK, Found: f.path + " is readable by its owner alone"}
		if problem := configs.PrivateFile(f.path); problem != "" {
			e.State, e.Found, e.Hint = ExamFailed, problem, "chmod 600 "+f.path+"; who runs the daemon must own it"
		}
		exams = append(exams, e)
	}
	if !c.Security.Certified() {
		return exams
	}
	e := Exam{What: "certificate", About: c.Security.CertificateFile, State: ExamOK, Found: "valid, and this node's"}
	switch warnings, err := CheckSecurity(c, time.Now()); {
	case err != nil:
		e.State, e.Found, e.Hint = ExamFailed, strings.ReplaceAll(err.Error(), "\n", "; "), "fencepost certs show "+c.Security.CertificateFile
	case len(warnings) > 0:
		e.State, e.Found, e.Hint = ExamWarning, warnings[0], "fencepost certs renew --node "+c.Node
	}
	return append(exams, e)
}

// examineKeys tells of a node that closes what it cannot open: it is meant to be so where nothing is restored.
func examineKeys(c *configs.Config) (exams []Exam) {
	for i, p := range c.Processors {
		if p.Kind != "age" || p.RestoreOnly || p.IdentityFile != "" || p.PassphraseFile != "" {
			continue
		}
		exams = append(exams, Exam{What: "keys", About: fmt.Sprintf("processors[%d]", i), State: ExamOK,
			Found: "it closes backups and has no key that opens them: this node is given no restore and no verification"})
	}
	return exams
}

// secretFile is a file that only its owner may read, and the key that names it.
type secretFile struct{ key, path string }

// secretFiles are those of a configuration, in which the group's settings are, and of what only these have; nil: not known.
func secretFiles(c *configs.Config, group *configs.Settings) (list []secretFile) {
	add := func(key, path string) {
		if path != "" {
			list = append(list, secretFile{key, path})
		}
	}
	add("security.key_file", c.Security.KeyFile)
	add("security.gossip_key_file", c.Security.GossipKeyFile)
	for i, p := range c.Processors {
		add(fmt.Sprintf("processors[%d].identity_file", i), p.IdentityFile)
		add(fmt.Sprintf("processors[%d].passphrase_file", i), p.PassphraseFile)
	}
	if path, ok := c.Ledger.DSN.File(); ok {
		add("ledger.dsn", path)
	}
	for i, d := range c.Databases {
		if path, ok := d.DSN.File(); ok {
			add(fmt.Sprintf("databases[%d].dsn", i), path)
		}
	}
	for i, s := range c.Storages {
		for _, x := range []struct {
			key    string
			secret configs.Secret
		}{{"access_key", s.AccessKey}, {"secret_key", s.SecretKey}, {"refresh_token", s.RefreshToken}} {
			if path, ok := x.secret.File(); ok {
				add(fmt.Sprintf("storages[%d].%s", i, x.key), path)
			}
		}
	}
	if path, ok := c.Notify.Heartbeat.URL.File(); ok {
		add("notify.heartbeat.url", path)
	}
	for i, h := range c.Notify.Hooks {
		for key, secret := range map[string]configs.Secret{"url": h.URL, "secret": h.Secret} {
			if path, ok := secret.File(); ok {
				add(fmt.Sprintf("notify.hooks[%d].%s", i, key), path)
			}
		}
	}
	for i, m := range c.Notify.Mails {
		if path, ok := m.Password.File(); ok {
			add(fmt.Sprintf("notify.mails[%d].password", i), path)
		}
	}
	if group == nil {
		return list
	}
	for _, s := range group.Servers {
		if path, ok := s.DSN.File(); ok {
			add("server "+s.Name+": dsn", path)
		}
	}
	for _, b := range group.Heartbeats {
		if path, ok := b.URL.File(); ok {
			add("heartbeat "+b.Name+": url", path)
		}
	}
	return list
}

// How much room a home needs: the log takes segments beforehand, and a full disk stops the node.
const (
	homeLeast = 256 << 20
	homeAmple = 1 << 30
)

// examineHome looks at a node's own directory: that it can be made or used, whose it is, and what it lies on.
func examineHome(path string) []Exam {
	e := Exam{What: "home", About: path, State: ExamOK, Found: "is there, and private"}
	info, err := os.Stat(path)
	at := path
	switch {
	case errors.Is(err, fs.ErrNotExist):
		at = nearestParent(path)
		e.Found = "is made at the first start"
		if problem := writable(at); problem != "" {
			e.State, e.Found, e.Hint = ExamFailed, "cannot be made: "+problem, "install -d -m 0700 -o fencepost "+path
		}
	case err != nil:
		e.State, e.Found, e.Hint = ExamFailed, err.Error(), "run this as the user who runs the daemon"
		return []Exam{e}
	case !info.IsDir():
		e.State, e.Found, e.Hint = ExamFailed, "is no directory", "move it away, or choose another home"
		return []Exam{e}
	case writable(path) != "":
		e.State, e.Found, e.Hint = ExamFailed, writable(path), "run this as the user who runs the daemon; else: chown -R fencepost "+path
	case exposed(info):
		e.State, e.Found, e.Hint = ExamWarning, fmt.Sprintf("others may look inside (mode %04o)", info.Mode().Perm()), "chmod 700 "+path
	}
	return append([]Exam{e}, examineDisk(at)...)
}

func nearestParent(path string) string {
	for {
		parent := filepath.Dir(path)
		if _, err := os.Stat(parent); err == nil || parent == path {
			return parent
		}
		path = parent
	}
}

// writable is why nothing can be made in a directory; empty when it can.
func writable(dir string) string {
	f, err := os.CreateTemp(dir, ".doctor-")
	if err != nil {
		return err.Error()
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return err.Error()
	}
	return ""
}

// judgeDisk is what a file system means for a home. free is in bytes.
func judgeDisk(path, kind string, free uint64) []Exam {
	room := Exam{What: "disk", About: path, State: ExamOK, Found: fmt.Sprintf("%d MiB free", free>>20)}
	switch {
	case free < homeLeast:
		room.State, room.Hint = ExamFailed, "make room: the node stops when its log cannot be written"
	case free < homeAmple:
		room.State, room.Hint = ExamWarning, "make room: a GiB is ample"
	}
	fits := Exam{What: "file system", About: path, State: ExamOK, Found: kind}
	switch kind {
	case "nfs", "cifs", "smb", "fuse", "9p", "ceph":
		fits.State, fits.Found = ExamFailed, kind+": its locks and its syncing cannot be relied on"
		fits.Hint = "put the home on a disk of this machine; backups may lie there"
	case "tmpfs", "ramfs":
		fits.State, fits.Found = ExamWarning, kind+": it is empty after the machine was started, and the node is refused then"
		fits.Hint = "put the home on a disk of this machine"
	case "overlay":
		fits.State, fits.Found = ExamWarning, kind+": it goes with its container, and the node is refused then"
		fits.Hint = "mount a volume at the home"
	}
	return []Exam{room, fits}
}
