package warden

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// saveStands notes as which run the node stands. Who reads it finds the old one or the new one, whole.
func saveStands(dir string, run [16]byte) error {
	path := filepath.Join(dir, standsFile)
	if err := os.WriteFile(path+".new", []byte(hex.EncodeToString(run[:])), 0o600); err != nil {
		return fmt.Errorf("tell the warden of the new run: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("tell the warden of the new run: %w", err)
	}
	return nil
}

// loadStands is the run that the node said last; first, when it stands as the one that it was started for.
func loadStands(dir string, first [16]byte) ([16]byte, error) {
	text, err := os.ReadFile(filepath.Join(dir, standsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return first, nil
	}
	if err != nil {
		return first, fmt.Errorf("read as which run the node stood: %w", err)
	}
	run, err := hex.DecodeString(string(text))
	if err != nil || len(run) != len(first) {
		return first, errors.New("read as which run the node stood: it is damaged")
	}
	return [16]byte(run), nil
}
