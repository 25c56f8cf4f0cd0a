package offline

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fencepost/fencepost/gms/certs"
)

// An authority is replaced in three steps, so that no node ever meets a certificate that it cannot believe: all nodes come to
// believe both, then all certificates become the next one's, then nobody believes the old one any more. After each step the
// files that have changed go to the nodes, which take them up by themselves. A step that was cut short, or is done again,
// ends where it should; none can be done before the one ahead of it.

// Steps of the replacement of an authority.
const (
	RotateBegin  = "begin"  // a next authority is made; ca.pem has both
	RotateSign   = "sign"   // the certificates of all nodes become the next one's, which is the authority from then on
	RotateFinish = "finish" // ca.pem has the new one alone
)

// Rotated is what a step has changed.
type Rotated struct {
	Step    string     `json:"step"`
	Changed []string   `json:"changed"` // files that the nodes need now
	Certs   []CertFile `json:"certificates"`
}

// RotateAuthority does one step in the directory of the authority. Errors: a step that is not known, or that comes too early,
// and those of files.
func RotateAuthority(dir, step string, valid time.Duration) (Rotated, error) {
	do, known := map[string]func(string, time.Duration) ([]string, error){
		RotateBegin: beginRotation, RotateSign: signRotation, RotateFinish: finishRotation,
	}[step]
	if !known {
		return Rotated{}, fmt.Errorf("%q is no step: want %s, %s or %s", step, RotateBegin, RotateSign, RotateFinish)
	}
	changed, err := do(dir, valid)
	if err != nil {
		return Rotated{}, err
	}
	all, err := ShowCerts(dir, time.Now())
	return Rotated{Step: step, Changed: changed, Certs: all}, err
}

func authorityFile(dir string) string { return filepath.Join(dir, authorityName+certSuffix) }

// beginRotation makes the next authority. A key whose certificate has not come into ca.pem was never given to anybody.
func beginRotation(dir string, valid time.Duration) ([]string, error) {
	present, err := openAuthority(dir)
	if err != nil {
		return nil, err
	}
	keyFile := filepath.Join(dir, nextName+keySuffix)
	next, err := authorityBy(dir, nextName)
	switch {
	case err == nil: // begun before
	case !exists(keyFile), errors.Is(err, certs.ErrOtherKey):
		if next, err = certs.NewAuthority(present.Group(), cmp.Or(valid, AuthorityValid)); err != nil {
			return nil, err
		}
		key, err := next.Key()
		if err == nil {
			err = replace(keyFile, key)
		}
		if err != nil {
			return nil, err
		}
	default:
		return nil, err
	}
	return []string{authorityFile(dir)}, replace(authorityFile(dir), slices.Concat(present.Certificate(), next.Certificate()))
}

// signRotation makes all certificates the next authority's, and that one the authority.
func signRotation(dir string, valid time.Duration) ([]string, error) {
	present, err := openAuthority(dir)
	if err != nil {
		return nil, err
	}
	next := present
	if again := !exists(filepath.Join(dir, nextName+keySuffix)); !again {
		if next, err = authorityBy(dir, nextName); err != nil {
			return nil, err
		}
	} else if infos, err := ShowCerts(authorityFile(dir), time.Now()); err != nil || len(infos) < 2 {
		return nil, errors.Join(fmt.Errorf("there is no next authority in %s: %s comes first", dir, RotateBegin), err)
	}
	files, err := nodeCerts(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := resign(f, present, next, cmp.Or(valid, NodeValid)); err != nil {
			return nil, err
		}
	}
	if next != present {
		if err := os.Rename(filepath.Join(dir, nextName+keySuffix), filepath.Join(dir, authorityName+keySuffix)); err != nil {
			return nil, fmt.Errorf("make the next authority the present one: %w", err)
		}
	}
	return files, nil
}

// resign makes a certificate the next authority's, unless it is already.
func resign(file string, present, next *certs.Authority, valid time.Duration) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read a certificate: %w", err)
	}
	if done, err := next.Signed(text); done || err != nil {
		return err
	}
	renewed, err := next.Succeed(present, text, valid)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return replace(file, renewed)
}

// finishRotation has nobody believe the former authority any more.
func finishRotation(dir string, _ time.Duration) ([]string, error) {
	if exists(filepath.Join(dir, nextName+keySuffix)) {
		return nil, fmt.Errorf("the next authority of %s has signed nothing yet: %s comes first", dir, RotateSign)
	}
	present, err := openAuthority(dir)
	if err != nil {
		return nil, err
	}
	files, err := nodeCerts(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, fmt.Errorf("read a certificate: %w", err)
		}
		if own, err := present.Signed(text); err != nil || !own {
			return nil, errors.Join(fmt.Errorf("%s is of another authority, and nobody would believe it any more: issue it anew, or remove it", f), err)
		}
	}
	return []string{authorityFile(dir)}, replace(authorityFile(dir), present.Certificate())
}

// nodeCerts are the files in the directory that hold certificates of nodes.
func nodeCerts(dir string) (files []string, err error) {
	all, err := ShowCerts(dir, time.Now())
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if _, err := certs.ParseName(c.Name); err == nil && !slices.Contains(files, c.File) {
			files = append(files, c.File)
		}
	}
	return files, nil
}
