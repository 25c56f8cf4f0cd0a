// # What goes wrong elsewhere
//
// What makers of backups of this kind get wrong, each with what is done here and the tests that show its absence.
//
//	1   a dead node's task says uploading for ever           recovery settles it under a fence: TestRecoverFromCreating, TestRule27_ZombieInUpload, TestKillWhileUploading
//	2   half a backup is offered for restore                 only a manifest in the ledger's word counts: TestRecoverWithOneManifest, TestPick, TestNothingOfHalfABackup
//	3   a planned backup of a dead server never runs         any node takes it: TestStrayIsTakenUp, TestStopPlansAgain, TestFaultParentDies
//	4   one that was cancelled is lost and nobody is told    its row ends cancelled: TestCancelPlanned, TestCancelOfAdoptedTaskThatWaits
//	5   one that fails begins again without limit            attempts are counted: TestRecoverEnds, TestFailuresBeforeTheBeginAreCounted, TestCreateSourceStaysUnavailable
//	6   the error watcher sees the same ten rows for ever    handled ones are never seen again: TestErrorsAreHandledOnceOldestFirst, TestErrorWatcherRevertsWhatIsKept
//	7   a cancel is lost in a bulk read                      it is a row of its own, which no write touches: TestConformance (CancelSurvivesWrites, CancelOrFinish), TestCancelsAtRandomMoments
//	8   a cancelled upload's parts come after the clean-up   tombstones, and sweeps again and again: TestCancelWhileSealing, TestRule28_Sweep, TestSweepOfGoneBackups
//	9   a cancel after the owner's death is forgotten        recovery reads it: TestRecoverEnds, TestCancelOfAdoptedTaskThatWaits
//	10  a task is started before its row is committed        a claim begins with the row: TestATaskBeginsOnlyWhenItsRowIsThere
//	11  clocks of several servers are compared               one clock each, and those that stray change nothing: TestOneWrongClock, TestScheduleUnderAWrongClock
//	12  a failed download commits the part that came         COMMIT is a decision of its own: TestEndOfInputCommitsNothing, TestInPlaceEndsMidway, TestScriptIsCut
//	13  a ROLLBACK within COPY becomes a row                 nothing is sent after a broken stream: TestNothingIsSentIntoABrokenCopy, TestInPlaceIsAllOrNothing, TestStrayCommit
//	14  restoring through lines of text changes bytes        bytes all the way, hashed: TestRoundTrip, TestPlainRoundTrip, TestRandomDatabases
//	15  a failing dump is noticed five seconds late          the exit code comes before the end of data: TestDumpEndsMidway, TestCreateSourceFails, TestLyingProgram
//	16  deprocessors run in the wrong order                  TestUnwrapAllInvertsInReverseOrder, TestChainOrdersAndRefuses
//	17  a listing of more than a page loses parts            TestListingsOfMoreThanAPage, TestConformanceSmallPagesShortTokens
//	18  errors of a delete are swallowed                     it waits, and says so: TestDeleteWaitsForAStorage, TestDelete
//	19  a comma in a storage's name breaks a list            TestNamesHoldNoSeparators
//	20  a database's name goes unescaped into paths          paths hold ids only: TestPaths, TestNamesHoldNoSeparators, TestOddNames
//	21  passwords and tokens lie in clear                    TestNothingShowsIt, TestSecretsEncryptedAtRest, TestCommandLineIsClean, TestDSNHidesPassword
//	22  one log-in is shared by all                          the socket is its owner's, strangers have no certificate: TestListenModes, TestInitKeepsStrangersOut, TestOnlyTheProvenAreServed
//
// # What users of such tools met
//
// Reports about other tools, each a kind of fault, and what shows that it cannot happen here. (What concerns storages is in
// package storage.)
//
//	B1   an unreachable server gives an empty file and success exit code, stream and size count: TestDumpCannotBegin, TestCreateEmptyDump, TestFailingDumps
//	B3   the server was shut down during the dump             TestDumpServerShutDown, TestDumpEndsMidway
//	B4   cut backups for months                               read back and tried out on a schedule: TestVerifyTask, TestVerifyPinDelete, TestThrowaway; the server has no room: TestDumpServerDiskFull
//	B5   a failing dump in a pipe ends with 0                 no shell, each program's end is looked at: TestLyingProgram, TestDumpEndsMidway, TestCreateSourceFails
//	B6   a killed dump passes the compressor's test           a filter is closed only when its source ended well: TestAFailedWriteIsNeverCompleted, TestDumpEndsMidway
//	B7   gzip members in a row                                all are read, in any number: TestMembersInARow, TestUnwrapReadsWhatThePublicToolWrites
//	B10  restored although the file was missing               TestRestoreOfDamagedObjects, TestDamagedBackups
//	B11  a format that is written and cannot be restored      each goes round: TestRoundTrip, TestPlainRoundTrip, TestStreams, TestRandomDatabases
//	B15  a broken pipe counts as good                         TestWriterFails, TestCancel
//	B16  a restore over rows changes nothing and succeeds     refused, or replaced: TestRestoreCannotBegin, TestInPlaceCannotBegin, TestReplaceAndUndo
//	B17  ignored errors of a restore                          the first one ends it: TestRestoreWithoutRole, TestRestoreEndsMidway, TestPreview
//	B18  a failure half way leaves a mixture                  TestInPlaceIsAllOrNothing, TestRestoreEndsMidway, TestNothingOfHalfABackup
//	B20  psql commits what it got when its input is cut       TestEndOfInputCommitsNothing, TestInPlaceEndsMidway, TestStrayCommit
//	B21  a script that makes and enters its own database      refused, before it makes one: TestScriptOfItsOwnDatabase
//	B22  ways of pg_restore that exclude each other           chosen here, and refused with the remedy: TestInPlaceCannotBegin, TestRestoreJobsOfOneArchive, TestStreamsInPlace
//	B23  \restrict in an older psql                           TestPlainCannotBegin, TestKnowsRestrict, TestPlainRoundTrip
//	B24  a script runs programs by psql                       TestPlainRefused
//	B25  settings that the older server does not know         TestSpeaksTo, TestVersionFits
//	B26  an archive newer than pg_restore                     said before the start: TestVersionFits, TestProgramsThatDoNotFit, TestPreview
//	B27  a list of contents is taken for a check              TestVerify, TestNothingOfHalfABackup
//	B28  a changed bit in a script restores well              TestDamagedBackups, TestRestoreOfDamagedObjects
//	B29  no rights on some tables or large objects            named before anything is read: TestDumpCannotBegin, TestFilteredRights, TestWithoutSuperuser
//	B30  a filter leaves large objects out                    TestFilters
//	B31  the keys were on the machine that was lost           TestKit, TestKitHoldsWhatIsNeeded, TestManifestsNameTheirKit, TestRestoreDirect
//	B32  client older than the server                         TestChooseTool, TestProgramsThatDoNotFit
//	B33  passwords with odd characters                        TestConninfoRoundTrip, TestDSNForms, TestRoundTrip
//	B34  a password file with the wrong mode is passed over   none is written; one that is used is tried: TestConnections, TestPasswordsDoNotMeet
//	B35  names with odd characters                            TestOddNames, TestNames
//	B37  filters with odd names find nothing                  TestPatternsMeanThemselves, TestWrongFilters
//	B39  jobs see each other's password                       TestPasswordsDoNotMeet
//	B40  the password in the list of processes                TestCommandLineIsClean, TestCancelsAtRandomMoments, TestKillsAtRandomMoments
//	B41  the password in errors and logs                      TestRedactorFindsEveryForm, TestFailingDumps, TestNothingShowsIt
//	B46  pages that ask nobody who they are                   TestListenModes, TestInitKeepsStrangersOut
//	B48  failing jobs and retention leave no good backup      TestNeverTheLastGoodOne, TestDecide
//	B49  an edit of a schedule deletes backups                nothing but a delete task does: TestScheduleEnableDisable, TestHeldSaysWhatWouldGo
//	B50  slots of retention overlap                           TestDecide, TestHourlyThroughARepeatedHour
//	B51  what a later backup needs is deleted                 each is whole by itself: TestRestoreDirect, TestStoragesOutliveTheLedger
//	B52  the wrong day goes                                   TestZones
//	B53  retention surprises                                  each decision is explained: TestHeldSaysWhatWouldGo, TestPrune
//	B55  everything goes                                      TestStops, TestNeverTheLastGoodOne
//	B56  running for ever after a restart                     TestTasksKilledAtRandomMoments, TestKillsAtRandomMoments, TestRestartKeepsTasksAndStorages
//	B57  half cleaned up after a restart                      TestRecovererDiesHalfWay, TestRecoverAgainWithTheSameToken, TestKillTheRecoverer
//	B58  a cancel works for some kinds only                   TestCancelOfEachTypeInEachState, TestCancelsAtRandomMoments
//	B59  a cancel is lost in a bulk read                      TestEndWhileWaitingForLock, TestStubbornProgram, TestCreateStorageStalls
//	B60  an orphan of a dump holds its locks for days         TestKilledNode, TestSettleEndsDump, TestTheStandbyIsWatched
//	B61  a stop breaks off what runs                          TestStopPlansAgain, TestStopWaitsForWhatEnds
//	B64  one hung task stops all schedules                    TestFaultHungWorkerStopsNobodyElse, TestTimeLimitByItself
//	B65  two schedulers run the same job                      TestTwoNodesOneSchedule100Ticks, TestHundredTicksHundredTasks
//	B66  a lost message blocks a database                     TestWithAllNotificationsLost
//	B67  runs of one job pile up                              TestDecide, TestConformance (OnlyOneInFlight)
//	B68  runs wait for a backup that is gone                  TestScheduleEnableDisable, TestStrayIsTakenUp
//	B69  the hour that is missing or comes twice              TestClockChanges, TestHourlyThroughARepeatedHour
//	B70  shown in one zone, run in another                    TestClockChanges, TestScheduleEnableDisable
//	B71  missed runs are lost, or all made up for             TestMissedWhileAllWereAway, TestLongDowntimeKeepsTheListShort
//	B73  a wrong clock changes what is due                    TestOneWrongClock, TestScheduleUnderAWrongClock
//	B74  time-outs of the role, replay on a standby           TestTimeLimitsOfTheRole, TestDSNForms, TestRecoveryConflict, TestStandbyFits
//	B81  wrong keys are found late, others cannot decrypt     TestAWrongKeyIsFoundBeforeAnythingIsPrepared, TestDamageInTheChunks, TestThePublicToolsAndAnEncryptedBackup
//	B82  one way of asking writes plain text                  one chain for all: TestThePublicToolsAndAnEncryptedBackup, TestConfiguredProcessors
//	B86  a message is taken for sent                          TestReceiversThatAreAway, TestHookThatRefuses
package pipeline
