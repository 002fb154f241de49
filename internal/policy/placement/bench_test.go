package placement

import (
	"math/rand/v2"
	"testing"
)

// churn is a long run of short-lived buffers, about 200 at a time, of a hundred sizes;
// some live for long.
func churn(n int) []Buffer {
	r := rand.New(rand.NewPCG(1, 1))
	buffers := make([]Buffer, 0, n)
	var live []int
	now := int64(0)
	for len(buffers) < n {
		now++
		if len(live) < 200 || r.IntN(3) == 0 && len(live) < 3000 {
			live = append(live, len(buffers))
			buffers = append(buffers, Buffer{Lower: now, Size: 512 * (1 + r.Uint64N(99))})
			continue
		}
		at := r.IntN(len(live))
		buffers[live[at]].Upper = now
		live[at] = live[len(live)-1]
		live = live[:len(live)-1]
	}
	for _, i := range live {
		buffers[i].Upper = now + 1
	}
	return buffers
}

func BenchmarkGreedy(b *testing.B) {
	buffers := churn(200_000)
	for b.Loop() {
		p := newPlanner(buffers)
		if height, ok := p.run(b.Context(), p.bySize(), noBound); ok {
			b.ReportMetric(float64(height), "height")
		}
	}
}
