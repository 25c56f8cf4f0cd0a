package configs

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"
)

func (c *Config) checkProcessors(ps *problems) {
	seen, kinds := map[int]int{}, map[string]int{}
	for i, p := range c.Processors {
		at := fmt.Sprintf("processors[%d]", i)
		p.check(ps, at)
		if first, twice := kinds[p.Kind]; twice {
			ps.add(at+".kind", "is %q, as that of processors[%d]: each kind once", p.Kind, first)
			continue
		}
		kinds[p.Kind] = i
		checkRange(ps, at+".precedence", p.Precedence, 0, 1000)
		if first, twice := seen[p.Precedence]; twice {
			ps.add(at+".precedence", "is %d, as that of processors[%d]: their order would be open", p.Precedence, first)
			continue
		}
		seen[p.Precedence] = i
	}
}

func (p *Processor) check(ps *problems, at string) {
	allowed := []string{"kind", "precedence", "restore_only"}
	switch p.Kind {
	case "zstd":
		allowed = append(allowed, "level")
		checkRange(ps, at+".level", p.Level, 1, 4)
	case "gzip":
		allowed = append(allowed, "level")
		checkRange(ps, at+".level", p.Level, 1, 9)
	case "age":
		allowed = append(allowed, "recipients", "recipients_file", "identity_file", "passphrase_file")
		p.checkKeys(ps, at)
	default:
		checkOneOf(ps, at+".kind", p.Kind, "zstd", "gzip", "age")
		return
	}
	checkFields(ps, at, reflect.ValueOf(*p), p.Kind, allowed)
}

// checkKeys never repeats a recipient: it may be the secret key, put in the wrong place.
func (p *Processor) checkKeys(ps *problems, at string) {
	for i, r := range p.Recipients {
		if !strings.HasPrefix(r, "age1") && !strings.HasPrefix(r, "ssh-") {
			ps.add(fmt.Sprintf("%s.recipients[%d]", at, i), "is no public key: want age1... or ssh-ed25519 or ssh-rsa ...")
		}
	}
	for _, f := range []struct{ key, path string }{
		{"recipients_file", p.RecipientsFile}, {"identity_file", p.IdentityFile}, {"passphrase_file", p.PassphraseFile},
	} {
		if f.path != "" {
			checkAbsolute(ps, at+"."+f.key, f.path)
		}
	}
	public := len(p.Recipients) > 0 || p.RecipientsFile != ""
	switch {
	case public && p.PassphraseFile != "":
		ps.add(at+".passphrase_file", "is set beside recipients: the format lets a passphrase be the only key, so remove one of them")
	case p.RestoreOnly && p.IdentityFile == "" && p.PassphraseFile == "":
		ps.add(at, "is for restores only, but has nothing to decrypt with: give identity_file or passphrase_file")
	case !p.RestoreOnly && !public && p.PassphraseFile == "":
		ps.add(at, "has nothing to encrypt with: give recipients, recipients_file or passphrase_file, or say restore_only: true")
	}
}

// checkFields reports what is set in entry and does not belong to its kind.
func checkFields(ps *problems, at string, entry reflect.Value, kind string, allowed []string) {
	for f, v := range entry.Fields() {
		if !slices.Contains(allowed, key(f)) && !v.IsZero() {
			ps.add(at+"."+key(f), "does not belong to kind %s, which knows %s: remove it", kind, strings.Join(allowed, ", "))
		}
	}
}

func (c lists) checkDatabases(ps *problems) {
	seen := map[string]int{}
	for i, d := range c.Databases {
		at := fmt.Sprintf("databases[%d]", i)
		checkItemName(ps, at, d.Name, "databases", seen, i)
		if d.Throwaway() {
			d.RPO = 0 // a default
			checkFields(ps, at, reflect.ValueOf(d), "throw-away server", []string{"name", "scratch", "dir"})
		} else if d.Dir != "" {
			ps.add(at+".dir", "belongs to a scratch server without a dsn only: remove it")
		}
		if d.Dir != "" && !filepath.IsAbs(d.Dir) {
			ps.add(at+".dir", "is %q, want an absolute path", d.Dir)
		}
		if problem := d.DSN.problem(); problem != "" && !d.Throwaway() {
			ps.add(at+".dsn", "%s", problem)
		}
		d.checkDumping(ps, at)
	}
}

// checkDumping looks at how a database is dumped, and which nodes do.
func (d *Database) checkDumping(ps *problems, at string) {
	checkLabels(ps, at+".needs", d.Needs)
	checkLabels(ps, at+".labels", d.Labels)
	checkRange(ps, at+".max_dumps", d.MaxDumps, 0, 1000)
	checkOneOf(ps, at+".yield", d.Yield, "", "warn", "cancel")
	checkOneOf(ps, at+".standby", d.Standby, "", "prefer")
	checkOneOf(ps, at+".globals", d.Globals, "", "passwords", "none")
	checkRange(ps, at+".jobs", d.Jobs, 0, 32)
	if len(d.DBName) > 63 || strings.ContainsRune(d.DBName, 0) {
		ps.add(at+".dbname", "is no name of a database: want at most 63 bytes")
	}
	if d.RPO != 0 {
		checkDuration(ps, at+".rpo", d.RPO, time.Minute, 365*24*time.Hour)
	}
}

// maxLabels bounds the labels of a node, and those that a database needs.
const maxLabels = 16

func checkLabels(ps *problems, at string, labels []string) {
	if len(labels) > maxLabels {
		ps.add(at, "has %d labels, at most %d", len(labels), maxLabels)
	}
	for i, l := range labels {
		switch first := slices.Index(labels, l); {
		case !itemName.MatchString(l):
			ps.add(fmt.Sprintf("%s[%d]", at, i), "is %q, want 1 to 63 of a-z, 0-9 and _.- beginning with a letter or digit", l)
		case first < i:
			ps.add(fmt.Sprintf("%s[%d]", at, i), "is %q, as %s[%d] is: name each label once", l, at, first)
		}
	}
}

// checkItemName holds the alphabet (names become parts of object paths, on file systems
// that ignore case too) and that each name is given once.
func checkItemName(ps *problems, at, name, list string, seen map[string]int, i int) {
	if !itemName.MatchString(name) {
		ps.add(at+".name", "is %q, want 1 to 63 of a-z, 0-9 and _.- beginning with a letter or digit", name)
		return
	}
	if first, twice := seen[name]; twice {
		ps.add(at+".name", "is %q, as %s[%d] is: give each its own name", name, list, first)
		return
	}
	seen[name] = i
}
