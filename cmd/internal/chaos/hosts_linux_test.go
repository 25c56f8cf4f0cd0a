package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// prefix begins the names of all namespaces and links that are made here; then comes the process id of their maker.
const prefix = "fpc"

// host is a machine, as far as its network goes: a namespace with an address.
type host struct {
	name, addr string
	netns      string // "" on loopback
	handle     *os.File

	mu    sync.Mutex
	roots []*process // started here, and not known to have ended
}

// network is a bridge with hosts around it.
type network struct {
	bridge string
	reason string // why there are no namespaces; "" when there are
	subnet string // the first three numbers of all addresses, and a dot
	home   *os.File

	mu    sync.Mutex
	hosts map[string]*host
	cuts  map[[2]string]int // from, to → how many faults cut it
}

// newNetwork makes a bridge, or says in reason why there can be none.
func newNetwork() (*network, error) {
	id := os.Getpid()
	n := &network{bridge: fmt.Sprint(prefix, id), hosts: map[string]*host{}, cuts: map[[2]string]int{}}
	home, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return nil, err
	}
	n.home = home
	if n.reason = n.refused(); n.reason != "" {
		n.subnet = fmt.Sprintf("127.%d.%d.", 100+id/250%100, id%250)
		return n, nil
	}
	n.subnet = fmt.Sprintf("10.%d.%d.", 100+id/250%100, id%250)
	sweep()
	return n, errors.Join(ip("link", "add", n.bridge, "type", "bridge"), ip("addr", "add", n.subnet+"254/24", "dev", n.bridge), ip("link", "set", n.bridge, "up"))
}

// refused tries whether namespaces are allowed.
func (n *network) refused() string {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return "namespaces need root, and Linux"
	}
	try := n.bridge + "-try"
	err := errors.Join(ip("netns", "add", try), ip("link", "add", n.bridge+"a", "type", "veth", "peer", "name", n.bridge+"b", "netns", try))
	_ = ip("netns", "del", try)
	if err != nil {
		return "namespaces are not allowed: " + err.Error()
	}
	return ""
}

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %s%w", strings.Join(args, " "), out, err)
	}
	return nil
}

// sweep removes what makers that have died left: processes, namespaces, bridges, disks, files.
func sweep() {
	for _, kind := range []string{"/run/netns", "/sys/class/net", os.TempDir()} {
		found, _ := os.ReadDir(kind)
		for _, f := range found {
			rest, ours := strings.CutPrefix(f.Name(), prefix)
			end := strings.IndexFunc(rest+"-", func(r rune) bool { return r < '0' || r > '9' })
			maker, err := strconv.Atoi(rest[:end])
			if !ours || err != nil || syscall.Kill(maker, 0) == nil {
				continue
			}
			switch kind {
			case "/run/netns":
				emptied(f.Name())
				_ = ip("netns", "del", f.Name())
			case "/sys/class/net":
				_ = ip("link", "del", f.Name())
			default:
				_ = syscall.Unmount(filepath.Join(kind, f.Name(), "disk"), 0)
				_ = os.RemoveAll(filepath.Join(kind, f.Name()))
			}
		}
	}
}

// tempDir makes a directory that sweep knows.
func tempDir(what string) (string, error) {
	return os.MkdirTemp("", fmt.Sprintf("%s%d-%s", prefix, os.Getpid(), what))
}

// emptied kills all that runs in a namespace, until nothing does.
func emptied(netns string) {
	for {
		out, err := exec.Command("ip", "netns", "pids", netns).Output()
		pids := strings.Fields(string(out))
		if err != nil || len(pids) == 0 {
			return
		}
		for _, p := range pids {
			if pid, err := strconv.Atoi(p); err == nil && pid > 1 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		<-time.After(5 * time.Millisecond)
	}
}

// add makes a host; its number is the last one of its address.
func (n *network) add(name string, number int) (*host, error) {
	h := &host{name: name, addr: fmt.Sprint(n.subnet, number)}
	n.mu.Lock()
	n.hosts[name] = h
	n.mu.Unlock()
	if n.reason != "" {
		return h, nil
	}
	h.netns = n.bridge + "-" + name
	link := fmt.Sprintf("%sv%d", n.bridge, number)
	err := errors.Join(
		ip("netns", "add", h.netns),
		ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", h.netns),
		ip("link", "set", link, "master", n.bridge, "up"),
		ip("-n", h.netns, "addr", "add", h.addr+"/24", "dev", "eth0"),
		ip("-n", h.netns, "link", "set", "eth0", "up"),
		ip("-n", h.netns, "link", "set", "lo", "up"))
	if err != nil {
		return nil, err
	}
	h.handle, err = os.Open("/run/netns/" + h.netns)
	return h, err
}

// within calls do on a thread that is in the host's namespace: sockets that are made there, and processes that are started
// there, are the host's.
func (n *network) within(h *host, do func() error) (err error) {
	if h.netns == "" {
		return do()
	}
	runtime.LockOSThread()
	if err := unix.Setns(int(h.handle.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter %s: %w", h.netns, err)
	}
	defer func() {
		if back := unix.Setns(int(n.home.Fd()), unix.CLONE_NEWNET); back != nil {
			err = errors.Join(err, back) // the thread stays locked, and ends with its goroutine
			return
		}
		runtime.UnlockOSThread()
	}()
	return do()
}

// cut stops, or no longer stops, what one host sends to another; several faults may cut the same.
func (n *network) cut(from, to string, by int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	way := [2]string{from, to}
	before := n.cuts[way]
	n.cuts[way] += by
	switch {
	case before == 0 && by > 0:
		return ip("-n", n.hosts[from].netns, "route", "add", "blackhole", n.hosts[to].addr+"/32")
	case before > 0 && before+by == 0:
		return ip("-n", n.hosts[from].netns, "route", "del", "blackhole", n.hosts[to].addr+"/32")
	}
	return nil
}

// link takes a host's cable out, or puts it in.
func (n *network) link(name string, up bool) error {
	state := "down"
	if up {
		state = "up"
	}
	return ip("-n", n.hosts[name].netns, "link", "set", "eth0", state)
}

// lossy has a host lose that share of what reaches it, in thousandths; 0 ends it.
func (n *network) lossy(name string, share int) error {
	return n.within(n.hosts[name], func() error {
		args := []string{"-F", "INPUT"}
		if share > 0 {
			args = []string{"-A", "INPUT", "!", "-i", "lo", "-m", "statistic", "--mode", "random", "--probability", fmt.Sprintf("0.%03d", share), "-j", "DROP"}
		}
		out, err := exec.Command("iptables", args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("iptables: %s%w", out, err)
		}
		return nil
	})
}

// canLose tells whether there is something that loses packets.
func (n *network) canLose() bool {
	_, err := exec.LookPath("iptables")
	return n.reason == "" && err == nil
}

// close kills what is left on the hosts, says what that was, and removes them.
func (n *network) close() (left []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, h := range n.hosts {
		if h.netns == "" {
			continue
		}
		out, _ := exec.Command("ip", "netns", "pids", h.netns).Output()
		for _, pid := range strings.Fields(string(out)) {
			line, _ := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
			if len(line) > 0 {
				left = append(left, fmt.Sprintf("%s: process %s %q", h.name, pid, bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
			}
		}
		emptied(h.netns)
		h.handle.Close()
		_ = ip("netns", "del", h.netns)
	}
	if n.reason == "" {
		_ = ip("link", "del", n.bridge)
	}
	n.home.Close()
	return left
}

// process is one that was started here.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// start starts a program on a host; what it says is appended to a log. It dies with this process.
func (n *network) start(h *host, log string, env []string, program string, args ...string) (*process, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cmd := exec.Command(program, args...)
	ours := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "FENCEPOST_") }) // a node refuses what it does not know
	cmd.Env = append(ours, env...)
	cmd.Stdout, cmd.Stderr = f, f
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := n.within(h, cmd.Start); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	h.mu.Lock()
	h.roots = append(h.roots, p)
	h.mu.Unlock()
	go func() { // ends with the process
		_ = cmd.Wait()
		h.mu.Lock()
		h.roots = slices.DeleteFunc(h.roots, func(o *process) bool { return o == p })
		h.mu.Unlock()
		close(p.done)
	}()
	return p, nil
}

// die kills all processes of a host at once, as a power cut does: nobody there sees another one die first.
func (n *network) die(h *host) {
	h.mu.Lock()
	roots := slices.Clone(h.roots)
	h.mu.Unlock()
	for _, p := range roots {
		family := append([]int{p.cmd.Process.Pid}, descendants(p.cmd.Process.Pid)...)
		for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
			for _, pid := range family {
				_ = syscall.Kill(pid, signal)
			}
		}
	}
	for _, p := range roots {
		<-p.done
	}
	if h.netns != "" {
		emptied(h.netns)
	}
}

// descendants lists the children, and theirs, of a process.
func descendants(pid int) (all []int) {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		data, err := os.ReadFile(path)
		at := bytes.LastIndexByte(data, ')')
		if err != nil || at < 0 {
			continue
		}
		f := strings.Fields(string(data[at+1:]))
		child, _ := strconv.Atoi(strings.Split(path, "/")[2])
		parent, _ := strconv.Atoi(f[1])
		children[parent] = append(children[parent], child)
	}
	for queue := children[pid]; len(queue) > 0; queue = queue[1:] {
		all = append(all, queue[0])
		queue = append(queue, children[queue[0]]...)
	}
	return all
}

// childOf is a direct child of a process, 0 while there is none.
func childOf(parent int) int {
	for _, pid := range descendants(parent) {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		at := bytes.LastIndexByte(data, ')')
		if err != nil || at < 0 {
			continue
		}
		if f := strings.Fields(string(data[at+1:])); f[1] == strconv.Itoa(parent) && f[0] != "Z" {
			return pid
		}
	}
	return 0
}
