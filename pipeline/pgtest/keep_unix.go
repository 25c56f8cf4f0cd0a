//go:build unix

package pgtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// keeper is the shell that outlives nobody. It starts the server and waits for the end of its standard input, which this
// process holds open and the kernel closes when the process dies in whatever way. Then it ends the server at once, and
// when that is gone removes the directory. It says "ended" when the server ends, be it by itself.
const keeper = `dir=$1; shift
exec 3<&0
"$@" </dev/null >>"$dir/log" 2>&1 3<&- & server=$!
( read -r _ <&3; kill -QUIT $server ) 2>/dev/null & reader=$!
trap '' PIPE
wait $server
echo ended
wait $reader
cd /
rm -rf "$dir"`

// account is the user that runs the server; nil stands for the current one.
type account struct {
	uid, gid int
}

// serverAccount returns the user to run the server as. Only root needs another one.
func serverAccount(ctx context.Context) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			return newAccount(u)
		}
	}
	const made = "fencepost-pgtest"
	if out, err := exec.CommandContext(ctx, "useradd", "--system", made).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make an unprivileged user for the server: %w: %s", err, out)
	}
	u, err := user.Lookup(made)
	if err != nil {
		return nil, fmt.Errorf("find the user made for the server: %w", err)
	}
	return newAccount(u)
}

func newAccount(u *user.User) (*account, error) {
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, fmt.Errorf("read id of user %s: %w", u.Username, err)
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, fmt.Errorf("read group of user %s: %w", u.Username, err)
	}
	return &account{uid: uid, gid: gid}, nil
}

// own gives a file or directory to the account.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	if err := os.Chown(path, a.uid, a.gid); err != nil {
		return fmt.Errorf("give %s to the server's user: %w", path, err)
	}
	return nil
}

// as makes cmd run under the account, in a process group of its own (Ctrl-C is for us, not for the server).
func (a *account) as(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if a != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
}

// keptCommand returns the command that runs a server program until its standard input ends.
func keptCommand(dir, program string, args []string) *exec.Cmd {
	return exec.Command("/bin/sh", append([]string{"-c", keeper, "pgtest-keeper", dir, program}, args...)...)
}

// end does nothing here: the shell ends the server.
func (*Server) end() {}
