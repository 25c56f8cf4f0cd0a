package storage

import "context"

// estimateKey is the key of a context's estimate.
type estimateKey struct{}

// WithEstimate returns a context that tells Put about how many bytes its reader will yield. It is a hint that passes
// through all wrappers: a storage that has to choose the size of parts beforehand does so by it, and copes with more.
// Below 1 means unknown.
func WithEstimate(ctx context.Context, bytes int64) context.Context {
	return context.WithValue(ctx, estimateKey{}, bytes)
}

// Estimate returns what WithEstimate put into ctx, or 0.
func Estimate(ctx context.Context) int64 {
	n, _ := ctx.Value(estimateKey{}).(int64)
	return max(n, 0)
}
