package configs

import (
	"fmt"
	"path/filepath"
)

func (c *Config) checkProcessors(ps *problems) {
	seen := map[int]int{}
	for i, p := range c.Processors {
		at := fmt.Sprintf("processors[%d]", i)
		checkOneOf(ps, at+".kind", p.Kind, "zstd")
		checkRange(ps, at+".level", p.Level, 1, 4)
		checkRange(ps, at+".precedence", p.Precedence, 0, 1000)
		if first, twice := seen[p.Precedence]; twice {
			ps.add(at+".precedence", "is %d, as that of processors[%d]: their order would be open", p.Precedence, first)
			continue
		}
		seen[p.Precedence] = i
	}
}

func (c *Config) checkDatabases(ps *problems) {
	seen := map[string]int{}
	for i, d := range c.Databases {
		at := fmt.Sprintf("databases[%d]", i)
		checkItemName(ps, at, d.Name, "databases", seen, i)
		if problem := d.DSN.problem(); problem != "" {
			ps.add(at+".dsn", "%s", problem)
		}
	}
}

func (c *Config) checkStorages(ps *problems) {
	seen, paths := map[string]int{}, map[string]int{}
	for i, s := range c.Storages {
		at := fmt.Sprintf("storages[%d]", i)
		checkItemName(ps, at, s.Name, "storages", seen, i)
		checkOneOf(ps, at+".kind", s.Kind, "local", "mem")
		if s.Kind == "mem" && s.Path != "" {
			ps.add(at+".path", "is set, but memory has no path: remove it or write kind: local")
		}
		if s.Kind != "local" {
			continue
		}
		checkAbsolute(ps, at+".path", s.Path)
		path := filepath.Clean(s.Path)
		if first, twice := paths[path]; twice && s.Path != "" {
			ps.add(at+".path", "is %q, as that of storages[%d]: two copies in one place are one copy", s.Path, first)
			continue
		}
		paths[path] = i
	}
	if n := int(c.Backup.Require); n > 1 && len(c.Storages) > 0 && n > len(c.Storages) {
		ps.add("backup.require", "is %d, but there are %d storages: lower it or add storages", n, len(c.Storages))
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
