package eager

import "testing"

// The workspaces of batch norms in an EfficientNet and a video network.
func TestBatchNormSpace(t *testing.T) {
	for _, c := range []struct {
		shape             []int64
		dtype             DType
		forward, backward int64
	}{
		{[]int64{64, 16, 112, 112}, Float16, 2590364, 4282916},
		{[]int64{64, 96, 112, 112}, Float16, 5179656, 8564776},
		{[]int64{64, 24, 56, 56}, Float16, 648656, 1071652},
		{[]int64{64, 144, 56, 56}, Float16, 1943824, 3212844},
		{[]int64{64, 40, 28, 28}, Float16, 163100, 268836},
		{[]int64{64, 240, 28, 28}, Float16, 649184, 1072176},
		{[]int64{64, 672, 14, 14}, Float16, 449520, 738892},
		{[]int64{64, 1152, 7, 7}, Float16, 186904, 305256},
		{[]int64{64, 1280, 7, 7}, Float16, 207552, 339056},
		{[]int64{8, 64, 16, 56, 56}, Float32, 3237428, 2142244},
		{[]int64{8, 256, 4, 14, 14}, Float32, 203360, 136240},
		{[]int64{8, 512, 2, 7, 7}, Float32, 54768, 37952},
	} {
		if got := batchNormSpace(c.shape, true, c.dtype, false); got != c.forward {
			t.Errorf("%v: forward takes %d, want %d", c.shape, got, c.forward)
		}
		if got := batchNormSpace(c.shape, true, c.dtype, true); got != c.backward {
			t.Errorf("%v: backward takes %d, want %d", c.shape, got, c.backward)
		}
		if got := batchNormSpace(c.shape, false, c.dtype, false); got != 0 {
			t.Errorf("%v: contiguous takes %d, want none", c.shape, got)
		}
	}
}
