package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fencepost/fencepost/pipeline"
)

// contents is what lies in a storage's directory, read as files, without the storage's own code.
type contents struct {
	valid    []pipeline.Manifest // whose objects are there, whole
	void     []pipeline.Manifest
	problems []string // what should not be there, or is not as its manifest says
}

// private is the folder in which a storage keeps what is no object.
const private = "_fencepost"

// look reads a storage's directory.
func look(s store) (contents, error) {
	var c contents
	objects := map[string]bool{} // paths of objects, of which no manifest has told yet
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(s.dir, path)
		if err != nil {
			return err
		}
		switch {
		case strings.HasPrefix(name, filepath.Join(private, "tmp")+string(filepath.Separator)):
			c.problems = append(c.problems, "temporary file "+name)
		case strings.HasPrefix(name, private+string(filepath.Separator)):
		default:
			objects[path] = true
		}
		return nil
	})
	if err != nil {
		return c, fmt.Errorf("look into storage %s: %w", s.name, err)
	}
	for path := range objects {
		if filepath.Base(path) == "manifest.json" {
			delete(objects, path)
			if err := c.manifest(path, objects); err != nil {
				return c, fmt.Errorf("look into storage %s: %w", s.name, err)
			}
		}
	}
	for path := range objects {
		c.problems = append(c.problems, "object without a valid manifest: "+strings.TrimPrefix(path, s.dir))
	}
	return c, nil
}

// manifest notes one, and takes its objects out of those that nobody has told of.
func (c *contents) manifest(path string, objects map[string]bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	m, err := pipeline.DecodeManifest(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if m.Void {
		c.void = append(c.void, m)
		return nil
	}
	whole := true
	for _, o := range m.Objects {
		file := filepath.Join(filepath.Dir(path), o.Name)
		size, sum, err := hash(file)
		switch {
		case err != nil:
			whole = false
			c.problems = append(c.problems, err.Error())
		case size != o.StoredBytes || sum != o.StoredSHA256:
			whole = false
			c.problems = append(c.problems, fmt.Sprintf("%s is not what its manifest says", file))
		}
		delete(objects, file)
	}
	if whole {
		c.valid = append(c.valid, m)
	}
	return nil
}

func hash(path string) (size int64, sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, f)
	return size, hex.EncodeToString(h.Sum(nil)), err
}

// tombs are the rows of the tombstones of the killed attempt, by what they say of themselves.
func (d *demo) tombs(k kill) (rows []row, err error) {
	for _, s := range d.storages {
		c, err := look(s)
		if err != nil {
			return nil, err
		}
		for _, m := range c.void {
			if m.Token == k.token {
				rows = append(rows, row{m.Created, "", fmt.Sprintf("tombstone in %s: attempt %d can never be committed there", s.name, k.attempt)})
			}
		}
	}
	return rows, nil
}
