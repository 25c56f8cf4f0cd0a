package pipeline

import (
	"context"
	"sync"

	"github.com/fencepost/fencepost/pipeline/source"
)

// writeStages groups the parts of a dump, in their order: neighbours that hold rows are written at the same time.
func writeStages(parts []string) [][]string {
	var out [][]string
	for i, part := range parts {
		if i > 0 && source.IsStream(part) && source.IsStream(parts[i-1]) {
			out[len(out)-1] = append(out[len(out)-1], part)
			continue
		}
		out = append(out, []string{part})
	}
	return out
}

// together does all parts at the same time, but at most limit at once (0: no limit). The first error is the cause that
// ends the others; it returns when all have ended, with that error.
func together(ctx context.Context, parts []string, limit int, do func(ctx context.Context, part string) error) error {
	if len(parts) == 1 {
		return do(ctx, parts[0])
	}
	if limit <= 0 || limit > len(parts) {
		limit = len(parts)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo := make(chan string)
	var workers sync.WaitGroup
	for range limit {
		workers.Go(func() {
			for part := range todo {
				if err := do(ctx, part); err != nil {
					cancel(err)
				}
			}
		})
	}
hand:
	for _, part := range parts {
		select {
		case todo <- part:
		case <-ctx.Done():
			break hand
		}
	}
	close(todo)
	workers.Wait()
	return context.Cause(ctx)
}
