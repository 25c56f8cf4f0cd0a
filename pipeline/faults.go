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
package pipeline
