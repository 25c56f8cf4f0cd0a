// # What goes wrong elsewhere
//
// What users of backup tools have met at storages, what a storage of each kind gets wrong, and what the libraries below do
// not say, each with what is done here and the tests that show its absence. B are the reports of users, C the facts of the
// Dropbox API, D the traps of its SDK.
//
//	B2   a full disk, and the log says successful            flush, close and size are looked at: TestFullDisk, TestFullDiskOfOneStorage, TestDiskFullAndReadOnly, TestErrorsOfTheSystemAreClassified, TestShortPut
//	B8   a dump that failed lies under its final name        all or nothing: TestFailuresAndCancelsRemoveTheTemporary, TestASourceThatFailsLeavesNothing, TestNothingIsFinishedOfASourceThatFails, TestNothingStoredOfASourceThatFails
//	B9   one adapter commits what was cut                    one suite for all: TestConformance, TestWrappersConform, TestGuardConforms, TestEverySingleFault
//	B12  the disk of others fills                            room is left, and asked for on the way: TestMinFree, TestAFullAccount
//	B13  a backup whose file is gone is shown                compared with the storage: TestDiagnose, TestCheckStorage, TestVerify
//	B42  names that climb, links that lead out               TestValidName, TestLinksDoNotLeadOut, TestConformance
//	B43  a prune removes another's objects                   prefixes end at a slash: TestBelow, TestPrefixesInOneBucketDoNotMix, TestOpenLeavesWhatIsNotItsOwn
//	B62  orphans that nobody finds                           TestCheckStorage, TestKilledInTheMiddleOfAPut, TestKilledInTheMiddleOfAnUpload, TestStoragesOutliveTheLedger
//	B63  two holders, and the late one commits               the manifest is made once: TestRule26_ZombieBeforeManifest, TestALateUploadLoses, TestDropboxLateOwner, TestOneOfManyAdoptersWins
//	B75  more than 10,000 parts                              parts grow: TestPartSizes, TestAnEstimateFits
//	B76  objects of more than 2 GiB fail                     TestMemoryOfALongPut, TestPeakMemory
//	B77  unfinished uploads that are paid for                TestACancelledPutLeavesNothing, TestCancelledWithinEachStep, TestAbortUploads, TestSweepOfUploads, TestRefusedAbortIsNoFailureOfABackup
//	B78  out of memory in an upload                          TestMemoryIsBounded, TestFanOutUnderFaults, TestPeakMemory
//	B79  wrong settings are found when it runs, tests litter TestProbe, TestProbeCleansUpAfterACancel, TestStorageTestAddAdopt, TestWrongCredentialsAndBuckets
//	B80  temporary files and descriptors pile up             TestNothingStaysOpen, TestCleaningSparesLivingWriters, TestFailuresAndCancelsRemoveTheTemporary
//	B83  a dead connection hangs, retries go on in silence   TestASilentServer, TestLastingFaults, TestRetryEndsWithTheContext, TestCreateStorageStalls
//	B85  the catalog is lost                                 TestRule28_RebuildCatalog, TestStoragesOutliveTheLedger
//	B87  the storage is full and nobody was told             TestMinFree, TestAFullAccount, TestTheAccountIsFull
//	B88  backups end with the first token                    TestTokens, TestRenewingInVain, TestConformanceSmallPagesShortTokens
//	B89  a token is fetched once                             TestTokens
//	B90  503 at the finish, then not found                   the object itself is asked: TestLostAnswers, TestAnotherIsFaster, TestPassingFaults
//	B91  storms of 429                                       one pause for the account: TestRateLimits
//	B92  Retry-After is hidden, names are not ASCII          TestRateLimits, TestHeaderSafe, TestConformance
//	B93  a consumed stream is sent again                     only one part is, from memory: TestPassingFaults, TestRetryNeverSendsAConsumedStreamAgain
//	B94  uploads over the limit of one request               TestNoRequestIsLongerThanAPart
//	B95  a listing is behind a write                         no listing decides what was made: TestLostAnswers, TestGuardDoesNotBelieveAnEmptyListing
//	B97  the page of the authorization cannot come back      a code is pasted: TestAuthorize, TestStorageAuth
//	B98  only the first page is seen                         TestConformanceSmallPagesShortTokens, TestListingsOfMoreThanAPage
//
//	C1   a wrong offset says the right one                   TestPassingFaults
//	C2   sessions are forgotten                              TestForgottenSessions
//	C3   one writer at a time in a namespace                 TestRateLimits, TestAnotherIsFaster
//	C4   equal contents do not conflict                      strict: TestAnotherIsFaster, TestConformance
//	C5   hashes of the content                               TestADamagedDownloadIsNoticed
//	C6   a download breaks off                               TestADownloadGoesOnWhereItBrokeOff
//	C7   a listing begins anew                               TestListingsBeginAnew, TestDeletedWhileListed
//	C8   case does not count, names are forbidden            TestNamesInTheAccount, TestNames
//	C9   rights are missing, tokens revoked                  TestTokens, TestAuthorize
//	C10  answers that are no JSON                            TestPassingFaults, TestRateLimitsOfAnyForm
//	C11  a finish comes when nobody waits any more           TestALateFinish, TestDropboxLateOwner
//
//	D1   raw UTF-8 in a header                               TestHeaderSafe, TestConformance
//	D2   DEL in a header                                     TestHeaderSafe
//	D3   five digits above U+FFFF                            TestHeaderSafe
//	D4   Retry-After is not obeyed                           TestRateLimits
//	D5   too_many_write_operations at the finish             TestRateLimits
//	D6   a finish whose answer was lost is not found again   TestLostAnswers
//	D7   long waits are given up                             TestRateLimits
//	D8   a status is lost when the body is no JSON           TestPassingFaults, TestRateLimitsOfAnyForm
//	D9   a rate limit without a reason panics                TestRateLimitsOfAnyForm
//	D10  507 is not seen                                     TestTheAccountIsFull
//	D11  no time limits                                      TestASilentServer
//	D12  a simple upload is too long                         TestNoRequestIsLongerThanAPart
//	D13  the version is not what it says                     TestNothingAsksForTheVersionOfTheSDK
package storage
