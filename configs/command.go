package configs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// Bounds of a command that is asked for a secret.
const (
	commandTime  = 30 * time.Second
	commandBytes = 64 << 10
)

// runCommand runs a program, given by its absolute path and followed by arguments between spaces, and returns the first
// line that it writes. There is no shell. What it says of its own accord is not repeated: it may hold the secret.
func runCommand(command, what string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	words := strings.Fields(command)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.WaitDelay = time.Second // for a child of its own that holds the pipe
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", fmt.Errorf("ask %s for the %s: %w", words[0], what, err)
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("ask %s for the %s: %w", words[0], what, err)
	}
	text, readErr := io.ReadAll(io.LimitReader(out, commandBytes))
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("ask %s for the %s: it did not end within %v", words[0], what, commandTime)
	case err != nil || readErr != nil:
		return "", fmt.Errorf("ask %s for the %s: %w", words[0], what, errors.Join(err, readErr))
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSpace(line); line == "" {
		return "", fmt.Errorf("ask %s for the %s: it wrote nothing", words[0], what)
	}
	return line, nil
}

// commandProblem is why a command cannot be run; empty when it can.
func commandProblem(command string) string {
	if !strings.HasPrefix(strings.TrimSpace(command), "/") {
		return "names a program without its path: write command: and an absolute one"
	}
	return ""
}
