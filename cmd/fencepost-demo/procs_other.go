//go:build !linux

package main

import (
	"errors"
	"os/exec"
)

// process is one line of a process table.
type process struct {
	pid, parent int
	name        string
}

var errLinuxOnly = errors.New("the demo needs Linux: it finds the processes of a node in /proc")

func bind(*exec.Cmd) {}

func ownStrays() error { return errLinuxOnly }

func killHard(process) error { return errLinuxOnly }

func family(int) ([]process, error) { return nil, errLinuxOnly }
