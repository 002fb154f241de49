package hf

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// The first bucket of a type closes at 1 MiB, the others at 25 MiB; a tensor is
// never cut.
func TestBuckets(t *testing.T) {
	m := eager.New(eager.H200)
	tensor := func(d eager.DType, mib int64) *eager.Tensor { return m.Empty("x", d, mib<<20/d.Size()) }
	var ts []*eager.Tensor
	for _, n := range []int64{8, 10, 10, 10, 3, 60, 1} {
		ts = append(ts, tensor(eager.BFloat16, n))
	}
	ts = append(ts, tensor(eager.Float32, 2), tensor(eager.Float32, 4))
	var got [][]int64
	for _, g := range assign(ts, firstBucket, bucketCap) {
		var sizes []int64
		for _, t := range g {
			sizes = append(sizes, t.Bytes()>>20)
		}
		got = append(got, sizes)
	}
	if want := "[[8] [10 10 10] [3 60] [2] [1] [4]]"; fmt.Sprint(got) != want {
		t.Errorf("buckets of %v MiB, want %s", got, want)
	}
}

// A group is begun by its first layer alone; negative ones are not recomputed.
func TestGroups(t *testing.T) {
	r := &run{job: &model.Job{Recompute: model.Recompute{Mode: recomputeGroup, Groups: []int{2, -3, 1, 2}}}}
	var got []int
	for i := range 10 {
		got = append(got, r.group(i))
	}
	if want := []int{2, 0, 0, 0, 0, 1, 2, 0, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("groups begin %v, want %v", got, want)
	}
	for _, c := range []struct {
		from, n int
		want    []int
	}{{0, 8, []int{2, -3, 1, 2}}, {0, 3, []int{2, -1}}, {1, 3, []int{1, -2}}, {4, 4, []int{-1, 1, 2}}, {7, 1, []int{1}}} {
		if got := cutGroups(r.job.Recompute.Groups, c.from, c.n); !slices.Equal(got, c.want) {
			t.Errorf("%d layers from %d on: %v, want %v", c.n, c.from, got, c.want)
		}
	}
}
