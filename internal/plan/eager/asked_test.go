package eager

import (
	"slices"
	"testing"
)

// What cuDNN said of a call counts if it knew the GPU; if it was told of one,
// where it leaves no kernels out and the convolution was not measured.
func TestAskedWorkspaces(t *testing.T) {
	const odd = 12345 << 9 // no kernel takes that
	call := func(kernel int64, onGPU bool, asked ...int64) *Call {
		x := Meta{DType: Float32, Known: true, Shape: []int64{3, 35, 19, 19}, Stride: []int64{35 * 361, 361, 19, 1}}
		w := Meta{DType: Float32, Known: true, Shape: []int64{37, 35, kernel, kernel}, Stride: []int64{35 * kernel * kernel, kernel * kernel, kernel, 1}}
		y := Meta{DType: Float32, Known: true, Shape: []int64{3, 37, 19, 19}, Stride: []int64{37 * 361, 361, 19, 1}, Bytes: 3 * 37 * 361 * 4}
		pair := func(n float64) []any { return []any{n, n} }
		return &Call{
			Op: "aten.convolution.default", In: []Meta{x, w}, Out: []Meta{y}, Fresh: []bool{true}, Workspaces: asked, OnGPU: onGPU,
			Args: []any{Ref(0), Ref(1), nil, pair(1), pair(float64(kernel / 2)), pair(1), false, pair(0), 1.0},
		}
	}
	for _, tt := range []struct {
		name   string
		call   *Call
		taken  bool
		unsure bool
	}{
		{"with a GPU", call(3, true, odd), true, false},
		{"with a GPU, 1x1", call(1, true, odd), true, false},
		{"told of one", call(3, false, odd), true, true},
		{"told of one, 1x1", call(1, false, odd), false, true},
		{"not asked", call(3, true, -1), false, true},
		{"an old ledger", call(3, true), false, true},
	} {
		k := NewKernels(H200)
		moves, known := k.Run(tt.call)
		taken := slices.ContainsFunc(moves, func(m Move) bool { return m.Bytes == odd })
		if !known || taken != tt.taken || k.Guessed() > 0 && !tt.unsure {
			t.Errorf("%s: known %v, taken %v, guessed %d in %v", tt.name, known, taken, k.Guessed(), moves)
		}
	}
}

// Two sizes for a recurrent layer: the workspace, and what the backward pass needs.
func TestAskedCell(t *testing.T) {
	const work, reserve = 7 << 20, 9 << 20
	x := Meta{DType: Float32, Known: true, Shape: []int64{20, 8, 64}, Stride: []int64{512, 64, 1}}
	out := func(n int64) Meta { return Meta{DType: Float32, Known: true, Shape: []int64{n}, Bytes: 4 * n} }
	run := func(train bool, asked ...int64) (bytes []int64) {
		moves, _ := NewKernels(H200).Run(&Call{
			Op: "aten._cudnn_rnn.default", In: []Meta{x}, Out: []Meta{out(20 * 8 * 64), out(512), out(512), out(1), out(1)}, Fresh: []bool{true, true, true, true, false},
			Args: []any{Ref(0), []any{}, 4.0, nil, nil, nil, 2.0, 64.0, 0.0, 1.0, false, 0.0, train, false, []any{}, nil}, Workspaces: asked, OnGPU: true,
		})
		for _, m := range moves {
			bytes = append(bytes, m.Bytes)
		}
		return bytes
	}
	if got := run(true, work, reserve); !slices.Contains(got, work) || !slices.Contains(got, reserve) {
		t.Errorf("training takes %v", got)
	}
	if got := run(false, work, reserve); !slices.Contains(got, work) || slices.Contains(got, reserve) {
		t.Errorf("inference takes %v", got)
	}
	if got := run(true, -1, -1); slices.Contains(got, work) {
		t.Errorf("not asked, it takes %v", got)
	}
}
