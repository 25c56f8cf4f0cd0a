package s3

import (
	"testing"

	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Storage { return fresh(t) }, storagetest.ContentVersions)
}
