package offline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// output is one file to be written.
type output struct{ path, text string }

// writeAll writes all files or none.
func writeAll(dir string, outputs []output) error {
	made, err := makeDir(dir)
	if err != nil {
		return err
	}
	for i, o := range outputs {
		err := writeNew(o.path, o.text)
		if err == nil {
			continue
		}
		for _, before := range outputs[:i] {
			err = errors.Join(err, os.Remove(before.path))
		}
		if made {
			err = errors.Join(err, os.Remove(dir))
		}
		return err
	}
	return nil
}

// makeDir makes dir and what is missing above it; made says whether dir was missing.
func makeDir(dir string) (made bool, err error) {
	if _, err := os.Stat(dir); err == nil {
		return false, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("look at the directory: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, fmt.Errorf("make the directory: %w", err)
	}
	return true, nil
}

// writeNew writes a file that must not be there. A file that could not be written whole
// is removed.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write a file: %w", err)
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Close())
	if err != nil {
		return fmt.Errorf("write a file: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}

// render is the text of a file: what differs from the defaults, and what a reader will
// look for first.
func render(p plan) string {
	c := p.config
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Node %s of group %s. Keys that are not here have their defaults:", c.Node, c.Group)
	line("# node.example.yaml explains them all.")
	line("node: %s", quote(c.Node))
	line("home: %s", quote(c.Home))
	line("group: %s", quote(c.Group))
	line("bootstrap: [%s]", quoteAll(c.Bootstrap))
	line("seeds: [%s]", quoteAll(c.Seeds))
	line("profile: %s", c.Profile)
	line("gossip:")
	line("  bind: %s", quote(c.Gossip.Bind))
	line("cluster:")
	line("  bind: %s", quote(c.Cluster.Bind))
	line("security:")
	line("  certificate_file: %s", quote(c.Security.CertificateFile))
	line("  key_file: %s", quote(c.Security.KeyFile))
	line("  ca_file: %s", quote(c.Security.CAFile))
	line("  gossip_key_file: %s", quote(c.Security.GossipKeyFile))
	line("admin:")
	line("  socket: %s", quote(c.Admin.Socket))
	line("  bind: %s", quote(c.Admin.Bind))
	if len(c.Databases) > 0 {
		line("databases:")
	}
	for _, d := range c.Databases {
		line("  - name: %s", quote(d.Name))
		line("    dsn: %s", quote(p.dsns[d.Name]))
	}
	if len(c.Storages) > 0 {
		line("storages:")
	}
	for _, s := range c.Storages {
		line("  - name: %s", quote(s.Name))
		line("    kind: %s", s.Kind)
		line("    path: %s", quote(s.Path))
	}
	return b.String()
}

// quote is a YAML text in double quotes, whatever is in it: YAML knows all of Go's escapes.
func quote(text string) string { return strconv.QuoteToASCII(text) }

func quoteAll(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = quote(t)
	}
	return strings.Join(quoted, ", ")
}
