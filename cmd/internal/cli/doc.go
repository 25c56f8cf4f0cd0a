// Package cli is the fencepost command: what an administrator types. One file per command,
// each with its options, its run function and its output value.
//
//	os.Exit(cli.Main(ctx, os.Args[1:], cli.System(version)))
//
// What all commands have in common:
//
//   - The result goes to standard output, as text for people or with -o json as the
//     daemon's own JSON: exact times and sizes instead of "3m ago" and "1.2 GiB". What
//     happens on the way goes to standard error.
//   - An error is one line on standard error, and a line with a hint when there is one.
//   - Exit codes: 0 ok, 1 failed, 2 usage, 3 busy, 4 lease lost, 5 not proven stopped,
//     6 needs operator. Nothing was asked of the daemon when the code is 2.
//   - The daemon is found at --socket, else FENCEPOST_SOCKET, else the default socket.
//   - --watch shows the result again whenever it changes, until interrupted, which is no
//     error. --wait waits until a task has ended and its end decides the exit code; to
//     interrupt that leaves the task running.
//
// Main has no global state: streams, environment and clock come in as Env, so that tests
// drive whole commands.
package cli
