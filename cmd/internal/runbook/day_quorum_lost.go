// # A majority of the nodes is gone for good, homes and all
//
// You see: no node leads; fencepost status says that no majority confirms what this node knows; nothing new begins. You know that the
// machines, or their homes, do not come back.
//
// It means: the survivor cannot know whether the others live and go on without it. A person has to say so, once.
//
// Do this, on one survivor, stopped. If several are left, look at each of them first, and take the one with the highest index:
//
//	n1$ systemctl stop fencepostd
//	n1$ fencepostd recover --config /etc/fencepost/node.yaml
//	… its log ends at index …
//	… nothing was changed. …
//	n1$ fencepostd recover --config /etc/fencepost/node.yaml --dead n2,n3
//	… goes on alone, with numbers above …
//	n1$ systemctl start fencepostd
//	n1$ fencepost status --wait
//	… n1 …
//
// Afterwards: what the dead had begun is recovered now. Start the others with empty homes: they come as newcomers, without node
// replace. Homes of theirs that turn up are refused until they are emptied (page home-refused). Make a new kit.
//
// Do not: do this while one of the named answers, or could within the hour: it is refused when one does, but not when it is only cut
// off. Then you would have two groups. If a majority can come back, wait.
package runbook
