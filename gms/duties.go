// # Duties of the shims
//
// What others met with the two libraries below, and with leases above them (the numbers are those of the project's list of
// field reports), each with what is done here and the test that holds it, or with the reason why it cannot occur. Raft is
// hashicorp/raft v1.8, gossip is memberlist v0.7; both are pinned, and the regression tests (TestR…, TestM…) provoke on the
// bare library what is still there.
//
//	R1   a heartbeat beside the main loop raises the term     no heartbeat handler: TestR01AnOldLeaderStampsNoTermThatItNeverWon; replicas are compared: TestAudits, TestReplicaThatDivergesEndsTheGroup
//	R2   a failed hand-over of leadership blocks for ever     only Stop hands over, within a second, and Raft ends after it: TestTransferLeadership, TestStopWithoutAQuorumIsBounded
//	R3   a follower is never replicated to again              one call in flight: TestR03AFollowerIsReplicatedToAfterARejection; alarm on who stands still, in its log or in what it applies: TestAFollowerThatStandsStillIsAnAlarm
//	R4   the leader's disk hangs and nobody is elected        a watch on each write, silence both ways, ErrDiskStalled: TestStalledDiskMakesSilent, TestStalledDisk
//	R5   a vote is two writes                                 one key: TestR05AVoteIsOneWrite, TestVoteSurvivesPowerCutWhole
//	R6   the outcome of a command is unknown                  request ids and a table of answers: TestRule21_ARepeatIsAnsweredIdenticallyAndChangesNothing, TestRule21_TheSameRequestIsRepeatedUntilItIsKnown
//	R7   Apply's time-out covers the queue only               the caller's context bounds all: TestAProposalEndsWithItsContext
//	R8   entries are applied again after a restart            applying has no effect outside of the state: TestThreeFormProposeAndRestart, TestDeliveredAgainAfterRestart
//	R9   applying reads a clock                               it cannot: TestTheMachineHasNoClockAndDrawsNothing, TestPropertyReplicasAgree
//	R10  a snapshot holds later entries                       values that never change: TestASnapshotDoesNotChangeWhileApplyGoesOn, TestSnapshotsUnderLoad (each 100 entries, hashes compared; also in make race)
//	R11  a follower never catches up with snapshots           the log keeps 10,240 entries; Health has the oldest one and the time that a restore took: TestSnapshotsUnderLoad, TestFedMemberFarBehind
//	R12  a stale read by a leader that was paused             the proof lies around the read: TestReadIndexCoversEarlierAnswers, TestVerifyNeedsCallsThatBeganAfterIt, TestCacheHistories
//	R13  an old leader's timers mark the healthy              a leader's word names its term: TestAnEarlierLeadersWordChangesNothing, TestRule06_LapsedIsMeasuredOnThisLeadersClock
//	R14  a leader that wakes up ends all leases               its own pause does not count, a new one gives a full TTL: TestRule06_LapsedIsMeasuredOnThisLeadersClock, TestTheLeadersOwnPauseMovesNoAppointment
//	R15  leadership flaps and all stop                        one goroutine drains into a cell: TestChangesTellLostAndRegained
//	R16  a leader that cannot begin stays one                 until its term is established it acknowledges and grants nothing (TestRule04_BeforeTheTermIsEstablishedNothingIsTaken). What can fail then is Raft's own barrier, which costs the leadership, or the question for the numbers given out before a group is formed: asked again and again with a warning, while there is nothing yet that could wait
//	R17  a new voter is empty                                 it follows first: TestNonvoterIsPromotedAndRemoved, TestPlanVoters
//	R18  dead voters are removed until none is left           by successors only: TestPlanVotersNeverLosesAMajority, TestAFourthNodeReplacesADeadVoter
//	R19  a rolling restart loses the quorum                   who restarts is a voter still: TestRollingRestart
//	R20  members come back with other addresses               a server's address is its node name: TestClientFollowsTheAddress, TestAddressesPreferTheHomeOnRecord
//	R21  a changed server is removed first                    changed in place: TestNonvoterIsPromotedAndRemoved
//	R22  an address leads into another group                  the cluster id is in each hello: TestStrangersAreTurnedAway, TestScenarioTwoGroups
//	R23  two clusters from one                                one list, never over a log: TestR23ALogIsFoundedOnce, TestFoundersAreAwaited, TestAFormedGroupIsNotFormedAgain
//	R24  a removed node calls elections                       pre-votes, and a home that was replaced or forgotten never comes back: TestForgetNodeForGood, TestNamesBelongToHomes
//	R25  pre-votes of 1.7.0                                   v1.8 is pinned
//	R26  a long-dead voter comes back                         TestLongDeadVoterComesBackQuietly
//	R27  a node replays its own removal                       it stays up: TestNonvoterIsPromotedAndRemoved
//	R28  a group of two                                       warned of, a witness helps: TestAPairIsWarned
//	R29  recovered from one survivor                          an offline tool, with numbers above all earlier ones: TestNumbersNeverGoBack
//	R30  deep pipelines are slow                              none: TestTransportTakesNoShortCuts
//	R31  anybody may speak Raft                               certificates that name the node: TestOnlyTheProvenAreServed, TestOnlyNodesAreNodes
//	R32  a failed write of the log comes to life              unknown, not refused: TestClassifyTellsRefusedFromUnknown
//	R33  large entries hold up heartbeats                     at most 512 KiB: TestProposalLimits, TestBatcherBounds
//	R34  a leader is removed under load                       TestLeaderRemovesItselfUnderLoad
//	W1   the log's file only grows                            raft-wal frees whole segments and has no list of free pages; v0.4 is pinned
//	W2   a log does not open after its end was taken back     TestDiskLogIsReadAfterItsEndWasTakenBack, TestDiskSurvivesKills
//	W3   a second process waits for the lock for ever         a bounded wait that says so: TestDiskIsOpenedByOne, TestHomeHasOneProcess
//	M1   a delegate blocks the library                        they copy and enqueue: TestSlowReaderHoldsNothingUp
//	M2   Members hands out live state                         TestMembersAreCopies
//	M3   a name at another address is a conflict              a name per run: TestM03AMovedNodeIsHeardAtOnce
//	M4   who restarts stays dead                              TestM04ARestartedNodeIsNotTakenForItsFormerLife
//	M5   a partition that lasts                               joining again and again: TestM05AnOutlastingPartitionHeals, TestJoinTargets
//	M6   the dead rise                                        the log's word counts: TestM06TheClosedDoNotRise, TestGossipAdmits
//	M7   those who left are kept                              v0.7 is pinned
//	M8   no Join after Leave                                  a new instance per run: TestLifeIsLivedOnce
//	M9   Leave times out                                      the log decides, gossip lingers: TestPlannedStop
//	M10  Leave and Shutdown race                              one order, once: TestStartStopStress, TestStopEndsCallsUnderWay
//	M11  a meta above 512 bytes panics                        checked before: TestMetaIsBounded
//	M12  the useful prober is not asked                       v0.7 is pinned; and silence closes nobody whose renewals arrive
//	M13  small messages allocate gigabytes                    v0.7 is pinned, compression is off, keys are required beyond loopback: TestOtherLabelAndOtherKeyAreDeaf, FuzzMeta
//	M14  two groups merge                                     label and cluster id: TestGossipAdmits, TestScenarioTwoGroups
//	M15  a node is down while keys change                     all that are on record prove that they have it: TestKeysWaitForTheAbsent, TestKeysAreChangedUnderLoad
//	M16  one slow node accuses the healthy                    accusers are not counted at all: gossip is what the leader's own member holds, and it closes nobody whose renewals arrive (TestScripts, TestRule03_AProofIsVoidWhileTheRunAnswers); a leader that is itself slow forgives that time (TestRule06_LapsedIsMeasuredOnThisLeadersClock)
//	M17  removal without a look                               the leader probes and pings: TestRule03_AProofIsVoidWhileTheRunAnswers
//	M18  queues grow                                          nothing of ours is broadcast; the queue of changes is bounded by the members, and its depth an alarm: TestAlarms, TestCoalesce
//	M19  a slow delegate drops messages                       none is slow, and no message goes through gossip: TestSlowReaderHoldsNothingUp
//	M20  datagrams are blocked                                counted and an alarm: TestWhoIsReachedByStreamOnlyIsKnown, TestAlarms
//	M21  joining waits for names and for the dead             resolved outside, all at once: TestJoinAsksAllAtOnce
//	M22  votes by gossip about a name                         the log refuses the newcomer: TestNamesBelongToHomes, TestRule03_AnotherHomeIsRefused
//	M23  messages before the queue exists                     New makes all, Start begins: TestStartErrorsLeaveNothingOpen
//	M24  the channel delegate blocks                          not used: TestSlowReaderHoldsNothingUp
//	M25  the clock stands still while the machine sleeps      CLOCK_BOOTTIME, looked at each half second: TestLeaseStandings
//	L1   a session comes back to life                         a closed run is closed for ever: TestLeaseClosedIsForEver, TestRule01_ARepeatedOpenRunChangesNothing
//	L2   one failed renewal ends all                          sent again through others until the deadline: TestRule05_RoundASilentLeader, TestRule05_WhileNoStreamCanBeOpened
//	L3   a lock-delay keeps its last holder out               there is none, tokens are checked: TestLockHistories
//	L4   a lock is granted to a dead waiter                   granting and closing are one log: TestRule21_ClosingFreesLocksAndWaits
//	L5   a stale read after a pause                           TestVerifyAfterIsolationIsNotSharedWithOneBefore, TestCacheHistories
//	L6   a server's restart ends its clients                  TestRule05_RoundASilentLeader, TestRule06_LapsedIsMeasuredOnThisLeadersClock
//	L7   who comes back runs a second copy                    it asks first: TestRule11_TwoRestartedNodesRecoverEachOther, TestRule10_FencedFromTheClosingToTheEnd
//	L8   an event is lost                                     recoveries are delivered from the state: TestDeliveredAgainAfterRestart
//	L9   joining is tried once                                as M5
//	L10  a restart is a removal                               to stop and to be forgotten are two calls: TestAllStopAndComeBack, TestForgetNode
//	L11  a renewal that hangs                                 the deadline is local and counts from sending: TestSessionDeadlineCountsFromSending, TestSessionStopsWhileAStreamHangs
//	L12  a rescuer that does not rescue                       the age of the oldest unrecovered failure, and an alarm: TestTheOldestUnrecoveredFailureIsKnown
//	L13  a TTL that runs to twice its value                   the bounds: a run's own deadline is its TTL less a margin after it sent the renewal; silence closes after one TTL if gossip holds it dead, else after three: TestScripts
//	L14  a stopped server hangs its watcher                   watches read the own replica; calls have deadlines and try the next: TestWatchHasNoGaps, TestCommanderFollowsTheLeader
package gms
