package embedded_test

import (
	"testing"

	"github.com/fencepost/fencepost/pipeline/ledger/ledgertest"
)

// The rules of PROTOCOL.md on the ledger, 23 to 30, as every kind of ledger keeps them.

func TestRule23_ShutOutComesFirst(t *testing.T) { ledgertest.Rule(t, 23, newLedger) }

func TestRule24_NothingSlipsPastAShutOut(t *testing.T) { ledgertest.Rule(t, 24, newLedger) }

func TestRule25_TheFirstWriteRevalidates(t *testing.T) { ledgertest.Rule(t, 25, newLedger) }

func TestRule26_WhatIsLeftIsKnown(t *testing.T) { ledgertest.Rule(t, 26, newLedger) }

func TestRule27_EveryAttemptHasANewToken(t *testing.T) { ledgertest.Rule(t, 27, newLedger) }

func TestRule28_GoneEntriesAreKept(t *testing.T) { ledgertest.Rule(t, 28, newLedger) }

func TestRule29_DeletingIsNotTakenBack(t *testing.T) { ledgertest.Rule(t, 29, newLedger) }

func TestRule30_DeletesAreCheckedWhereTheyTakeEffect(t *testing.T) { ledgertest.Rule(t, 30, newLedger) }
