package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// Machine is on what was measured. What the system does not tell is zero.
type Machine struct {
	Processors int     `json:"processors"`
	Processor  string  `json:"processor,omitempty"`
	Memory     int64   `json:"memory,omitempty"` // bytes
	System     string  `json:"system"`
	Go         string  `json:"go"`
	Load       float64 `json:"load"` // mean number of others that wanted a processor in the minute before
}

// String is its size, for the head of the table.
func (m Machine) String() string {
	s := fmt.Sprintf("%d processors, %d GiB, %s", m.Processors, (m.Memory+1<<29)>>30, m.System)
	if m.Load > 0.5 {
		s += fmt.Sprintf(" (not at rest: load %.1f)", m.Load)
	}
	return s
}

// ThisMachine looks at the machine it is called on.
func ThisMachine() Machine {
	m := Machine{Processors: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}
	m.Processor = word("/proc/cpuinfo", `model name\s*: (.*)`)
	kib, _ := strconv.ParseInt(word("/proc/meminfo", `MemTotal:\s*(\d+) kB`), 10, 64)
	m.Memory = kib << 10
	m.Load, _ = strconv.ParseFloat(word("/proc/loadavg", `^(\S+)`), 64)
	if release := word("/proc/sys/kernel/osrelease", `(.*)`); release != "" {
		m.System += " " + release
	}
	return m
}

func word(file, pattern string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "" // not such a system
	}
	if found := regexp.MustCompile(pattern).FindSubmatch(text); found != nil {
		return string(bytes.TrimSpace(found[1]))
	}
	return ""
}

// Versions of the programs that are measured with or against; those that are not there are left out.
func Versions() map[string]string {
	out := map[string]string{}
	for name, command := range map[string][]string{
		"pg_dump": {"pg_dump", "--version"}, "zstd": {"zstd", "--version"}, "age": {"age", "--version"},
	} {
		if text, err := exec.Command(command[0], command[1:]...).Output(); err == nil {
			out[name] = strings.TrimSpace(strings.SplitN(string(text), "\n", 2)[0])
		}
	}
	return out
}
