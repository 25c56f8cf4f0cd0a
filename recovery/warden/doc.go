// Package warden watches one node process from outside: it starts it, waits, and when it dies tells the world, kills what is
// left, proves that nothing is, cleans the home and starts the node again.
//
// The watcher:
//
//	w, err := warden.New(warden.Config{
//		Home:    home.Config{Dir: "/var/lib/app/env"},
//		Node:    "n1",
//		Command: warden.Command{Path: self, Args: os.Args[1:], Stderr: os.Stderr},
//		Sole:    true,
//	})
//	...
//	os.Exit(w.Run(ctx).Code)
//
// The node, first of all in its main:
//
//	child, err := warden.Inside(ctx) // nil, nil: no warden started this process
//	...
//	child.Beat()                     // when it is up, and again with each piece of progress
//	err = child.Stands(run)          // before it stands as another run of its group than child.Run()
//	child.Close(warden.InOrder)      // the last act, when it ends by itself
//
// # The life of a node
//
//	idle ──▶ recovering ──sealed──▶ starting ──▶ running ──ended in order──▶ retiring ──▶ finished
//	  │          ▲    │                 ▲         │  ▲ │
//	  │          │    └──after a death──┤         │  │ └─ no progress: stacks, grace, kill
//	  │ a living │        pausing ──────┘         │  │
//	  │ node     │                                │  │
//	  └──────────┼────────────────────────────────┼──┘ adopted
//	             │                                │ died: mark failed, tell "died", keep evidence
//	             │                                ▼
//	             └────proven, tell "quiesced"── burying ──not proven, or too many deaths──▶ finished
//
// From recovering, starting and burying it goes to roomless while the disk of the home is full, and back when there is room.
//
// The machine that decides this is pure and in a file of its own; the rest carries out what it says.
//
// # Promises
//
//   - One warden per home. A second one answers home.ErrBusy and changes no byte; it cannot steal a living node.
//   - A death is marked and announced before anything else is done about it. The obituary is signed by a key that was made for
//     this process, and speaks of the run as which it stood last; [Obituary] describes its bytes. Announcing never delays the
//     rest: a warden works the same when it reaches nobody.
//   - "Quiesced" and the next generation come only after everything of the run is dead: what carries its mark in the
//     environment, is in the node's session or group, descends from these, or (Sole, Linux) descends from the warden; and
//     after every seat of the home was free at once.
//   - Only the home's volatile part is swept. The warden does not know where the node keeps its log and its votes.
//   - A node that dies again and again is started Policy.Restarts times within Policy.Window, after growing pauses. Then the
//     outcome is code 6, the home stays closed, and the evidence of each death is in it. The count is this warden's: another
//     one, which somebody or a service manager with a limit of its own has started, begins anew.
//   - A node that never came up and ended with an exit code, or that said GaveUp, has said what is wrong: its code is the
//     warden's.
//   - A node that ends with code 0 wanted to; it is not started again.
//   - A full disk of the home is no death. Whatever does not fit (the proof, the seal, the next run) is done again when there is
//     room; the warden says so once and waits for as long as it takes. The obituary of a node that dies on it goes out at once.
//   - A node whose beats stop, or do not begin within Policy.StartFor, is asked for its stacks (SIGQUIT), then killed. Time in
//     which the warden itself did not run does not count against it.
//   - A node may stand as another run of its group without a new process: it says so before (Child.Stands), and is buried under
//     that name. What it leaves there is believed as far as it is a run's id.
//   - Signals in Config.Forward reach a node that is up, and mean nothing else.
//   - When the warden dies the node notices at once (its standard input ends), and goes on for Policy.OrphanFor. A new warden
//     that comes meanwhile adopts it, with its run and its key; otherwise it stops itself in order. Policy.Tied lets the
//     kernel kill it instead.
//   - Only the node, and children that were found to be of the run, are waited for: the exit states of a host's other
//     children are its own.
//
// # Duties of the host
//
//  1. Nothing durable below Home.Dir.
//  2. Sole only in a process that starts no children of its own.
//  3. The node keeps FP_RUN in the environment of its children, calls Beat only where it really makes progress, and never
//     starts a child that shall outlive it.
//
// # What is not promised
//
//   - That a process which left the node's session, dropped the mark and whose parent ended is found by a warden that is not
//     Sole, or by one that came after the death of the warden before.
//   - Other systems than Linux have no subreaper, no sessions, no marks and no pidfds here: what is left of a run is not
//     searched for (a drain still waits for the seats) and "quiesced" is never said, so that a recovery with exclusion by lease waits
//     for the lease to run out; a living node is not adopted, SIGQUIT is a kill, Tied is ignored.
package warden
