//go:build unix

package postgres

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	serverPrefix = "fencepost-scratch-" // of a server's folder
	serverOwner  = "owner"              // a file in it that is locked as long as the process lives that made it
	serverSocket = 5432                 // number in the socket's name
	serverRole   = "fencepost"
	maxSocketDir = 80 // bytes of a folder with a socket; the path of a socket has about a hundred
)

// keeper starts the server, and waits for the end of its own input, which is that of the process that started it. It then
// ends the server, and removes the folder.
const keeper = `dir=$1
shift
exec 3<&0
"$@" </dev/null >>"$dir/log" 2>&1 3<&- &
server=$!
trap '' HUP INT TERM PIPE
(cat <&3; kill -s QUIT "$server") >/dev/null 2>&1 &
end=$!
wait "$server"
echo ended
wait "$end"
cd / && rm -rf "$dir"`

// privateServer is a running server that nobody else can reach.
type privateServer struct {
	dir      string
	password string
	owner    *os.File // locked
	cmd      *exec.Cmd
	lifeline io.Closer
	ended    chan struct{} // closed when the server has ended, be it by itself
	once     sync.Once
	err      error // of stop
}

// startServer makes a server in a new folder below dir and starts it; it may not answer yet. An error leaves nothing behind.
func startServer(ctx context.Context, s *Source, bin, dir string) (*privateServer, error) {
	made, err := os.MkdirTemp(dir, serverPrefix)
	if err != nil {
		return nil, err
	}
	p := &privateServer{dir: made, password: rand.Text(), ended: make(chan struct{})}
	if err := p.start(ctx, s, bin); err != nil {
		return nil, errors.Join(err, removeServer(p.dir), p.disown())
	}
	return p, nil
}

func (p *privateServer) start(ctx context.Context, s *Source, bin string) error {
	who, err := serverAccount()
	if err != nil {
		return err
	}
	if len(p.dir) > maxSocketDir {
		return fmt.Errorf("folder %s has too long a name for a socket in it: name another one (dir)", p.dir)
	}
	if err := p.own(); err != nil {
		return err
	}
	if err := who.own(p.dir); err != nil {
		return err
	}
	if err := p.initialize(ctx, s, bin, who); err != nil {
		return err
	}
	return p.run(bin, who)
}

// own makes the file whose lock tells that this process lives. It gets its name when it is locked.
func (p *privateServer) own() (err error) {
	name := filepath.Join(p.dir, serverOwner)
	if p.owner, err = os.OpenFile(name+".new", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return err
	}
	if !lockFile(p.owner) {
		return fmt.Errorf("lock %s: this file system has no locks", p.owner.Name())
	}
	return os.Rename(name+".new", name)
}

func (p *privateServer) disown() error {
	if p.owner == nil {
		return nil
	}
	return p.owner.Close()
}

func lockFile(f *os.File) bool { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil }

// initialize makes the data folder. The password goes through a file that only the server's user can read.
func (p *privateServer) initialize(ctx context.Context, s *Source, bin string, who *account) error {
	pass := filepath.Join(p.dir, "password")
	if err := os.WriteFile(pass, []byte(p.password+"\n"), 0o600); err != nil {
		return err
	}
	if err := who.own(pass); err != nil {
		return err
	}
	child, err := startChild(command{
		path: filepath.Join(bin, "initdb"), env: serverEnviron(), account: who, dir: p.dir,
		args: []string{"--pgdata=" + filepath.Join(p.dir, "data"), "--username=" + serverRole, "--pwfile=" + pass, "--auth=scram-sha-256",
			"--encoding=UTF8", "--no-locale", "--no-sync"},
	}, s.cfg.Grace)
	if err != nil {
		return err
	}
	defer terminateWith(ctx, child)()
	if err := child.wait(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("initdb ended with %w: %s", err, lastError(child.stderr.text()))
	}
	return os.Remove(pass)
}

// run starts the keeper.
func (p *privateServer) run(bin string, who *account) error {
	args := []string{"-c", keeper, "fencepost-keeper", p.dir, filepath.Join(bin, "postgres"), "-D", filepath.Join(p.dir, "data")}
	for _, setting := range []string{
		"listen_addresses=", "port=" + strconv.Itoa(serverSocket), "unix_socket_directories=" + p.dir, "unix_socket_permissions=0700",
		"fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off", "wal_level=minimal", "max_wal_senders=0",
		"shared_buffers=64MB", "dynamic_shared_memory_type=mmap", "max_connections=60",
	} {
		args = append(args, "-c", setting)
	}
	p.cmd = exec.Command("/bin/sh", args...)
	p.cmd.Dir, p.cmd.Env = p.dir, serverEnviron()
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	who.as(p.cmd)
	var err error
	if p.lifeline, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() { // ends with the first word or the end of the keeper; stop waits for it
		defer close(p.ended)
		_, _ = out.Read(make([]byte, 16))
	}()
	return nil
}

func serverEnviron() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.Getenv("TMPDIR"), "LC_ALL=C"}
}

// said is the end of the server's log.
func (p *privateServer) said() string {
	log, _ := os.ReadFile(filepath.Join(p.dir, "log"))
	return lastError(printable(log[max(0, len(log)-maxLine):]))
}

func (p *privateServer) dsn() string {
	return fmt.Sprintf("host='%s' port=%d user=%s password=%s dbname=postgres sslmode=disable", conninfoEscaper.Replace(p.dir), serverSocket, serverRole, p.password)
}

// stop ends the server and removes its folder. Safe to call twice.
func (p *privateServer) stop() error {
	p.once.Do(func() {
		_ = p.lifeline.Close()
		<-p.ended
		_ = p.cmd.Wait() // what counts is that the folder is gone
		p.err = errors.Join(removeServer(p.dir), p.disown())
	})
	return p.err
}

// sweepServers removes the folders of servers below dir whose owners are dead, and returns their names.
func sweepServers(ctx context.Context, dir string) (removed []string, err error) {
	found, err := filepath.Glob(filepath.Join(globEscaper.Replace(dir), serverPrefix+"*"))
	if err != nil {
		return nil, err
	}
	for _, name := range found {
		if ctx.Err() != nil {
			return removed, ctx.Err()
		}
		if !ourServer(name) {
			continue
		}
		f, openErr := os.OpenFile(filepath.Join(name, serverOwner), os.O_RDWR, 0)
		if openErr != nil { // it is being made or removed; or it is empty, where a keeper might not remove more than what is in it
			if info, err := os.Lstat(name); err == nil && time.Since(info.ModTime()) > time.Minute && os.Remove(name) == nil {
				removed = append(removed, name)
			}
			continue
		}
		if lockFile(f) {
			err = errors.Join(err, removeServer(name))
			removed = append(removed, name)
		}
		_ = f.Close()
	}
	return removed, err
}

var globEscaper = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// ourServer tells whether a folder is one that a process of this user would have made: the place may be open to all.
func ourServer(name string) bool {
	info, err := os.Lstat(name)
	if err != nil || !info.IsDir() {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	who, err := serverAccount()
	return err == nil && (int(stat.Uid) == os.Geteuid() || who != nil && int(stat.Uid) == who.uid)
}

// removeServer ends the server whose folder this is, when it still runs, and removes the folder.
func removeServer(name string) error {
	limit := time.Now().Add(cleanupTimeout)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for pid := runningIn(name); pid != 0 && time.Now().Before(limit); pid = runningIn(name) {
		_ = syscall.Kill(pid, syscall.SIGQUIT)
		<-tick.C
	}
	return os.RemoveAll(name) // a server that we cannot see (elsewhere than on Linux) ends when its files are gone
}

// runningIn is the process of the server whose folder this is, 0 when there is none.
func runningIn(name string) int {
	data := filepath.Join(name, "data")
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return 0
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	pid, err := strconv.Atoi(string(line))
	if err != nil || pid <= 1 {
		return 0
	}
	if there, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err != nil || there != data {
		return 0 // it is gone, and the number may be somebody else's
	}
	return pid
}

// account is the user that runs a server; nil stands for this process's.
type account struct{ uid, gid int }

// serverAccount is nobody for root, whom no server runs as.
func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil, fmt.Errorf("find the user that a server of root's runs as: %w", err)
	}
	uid, err := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	return &account{uid, gid}, errors.Join(err, err2)
}

// own gives a file to the account.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Chown(path, a.uid, a.gid)
}

// as has a command run under the account.
func (a *account) as(cmd *exec.Cmd) {
	if a != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
}

func freeBytes(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}
