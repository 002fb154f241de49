package eager

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/jsonl"
)

// measuredConv is a convolution as cuDNN 9.19 ran it on an H200.
type measuredConv struct {
	of       string // random, a network, or a script
	conv     *Convolution
	space    [3]int64 // by pass, -1: not measured
	features []int64
	copies   int64 // bytes of all three with the channels last
	weight   float32
	held     bool // back from learning
}

func readWorkspaces(t *testing.T) []*measuredConv {
	t.Helper()
	var all []*measuredConv
	types := map[string]DType{"float16": Float16, "bfloat16": BFloat16, "float32": Float32}
	for i, r := range jsonl.Must[struct {
		Of, DType                 string
		Last, Transposed          bool
		X, W, Y                   []int64
		Stride, Padding, Dilation []int64
		Groups                    int64
		Forward, Input, Weight    *int64
	}](t, "../../../testdata/plan/workspaces.jsonl.gz") {
		c := Convolution{r.X, r.W, r.Y, types[r.DType], r.Last, r.Transposed, r.Stride, r.Padding, r.Dilation, r.Groups}
		m := &measuredConv{of: r.Of, conv: c.canonical(), weight: 1, held: i%10 == 0}
		if r.Of != "random" {
			m.weight = 2
		}
		if r.Transposed {
			r.Forward, r.Input = r.Input, r.Forward
		}
		for p, v := range []*int64{r.Forward, r.Input, r.Weight} {
			m.space[p] = -1
			if v != nil {
				m.space[p] = *v
			}
		}
		m.features = m.conv.features()
		for _, s := range [][]int64{r.X, r.W, r.Y} {
			m.copies += lastCopy(s, c.Type.Size(), to16Bytes)
		}
		if m.copies > 8<<20 {
			m.weight *= 2
		}
		if !c.Native() {
			all = append(all, m)
		} else if max(m.space[0], m.space[1], m.space[2]) > 0 {
			t.Errorf("%+v is native, but takes %v", c, m.space)
		}
	}
	return all
}

// figures say how far guesses are off, relative to copies of all tensors.
type figures struct {
	exact         int
	off           []float64
	bytes, copies float64
}

func (g *figures) add(c *measuredConv, p convPass, guess int64) {
	off := guess - c.space[p]
	if off == 0 {
		g.exact++
	}
	b := float64(max(off, -off))
	g.bytes += b
	g.copies += float64(c.copies)
	g.off = append(g.off, b/float64(c.copies))
}

// share is the percentage of exact guesses; half and most are how far the
// median and 90 % are off, all how far the sum is, in percent.
func (g *figures) share() (exact, near, half, most, all int) {
	slices.Sort(g.off)
	n := len(g.off)
	i, _ := slices.BinarySearch(g.off, 0.02)
	return 100 * g.exact / n, 100 * i / n, int(100 * g.off[n/2]), int(100 * g.off[n*9/10]), int(100 * g.bytes / g.copies)
}

func (g *figures) String() string {
	if len(g.off) == 0 {
		return "none"
	}
	a, b, c, d, e := g.share()
	return fmt.Sprintf("n %d exact %d%% near %d%% median %d%% p90 %d%% sum %d%%", len(g.off), a, b, c, d, e)
}

// Trees were not grown from every tenth convolution; on those they must stay as
// good as reported.
func TestGuessedWorkspaces(t *testing.T) {
	var held [6]figures // of random ones by pass, then of those in programs
	for _, c := range readWorkspaces(t) {
		for p, want := range c.space {
			if !c.held || want < 0 {
				continue
			}
			guess := c.conv.guess(convPass(p))
			if c.of == "random" {
				held[p].add(c, convPass(p), guess)
			} else {
				held[3+p].add(c, convPass(p), guess)
			}
		}
	}
	for p, limit := range []struct{ exact, near, half, most, all int }{
		{56, 69, 0, 98, 23},
		{57, 76, 0, 100, 16},
		{26, 46, 2, 100, 30},
		{71, 85, 0, 33, 10},
		{78, 91, 0, 0, 7},
		{45, 64, 0, 53, 16},
	} {
		exact, near, half, most, all := held[p].share()
		if exact < limit.exact || near < limit.near || half > limit.half || most > limit.most || all > limit.all {
			t.Errorf("%d: %v, want %+v", p, &held[p], limit)
		}
	}
}

// What was measured in networks and scripts is known.
func TestKnownWorkspaces(t *testing.T) {
	n := 0
	for _, c := range readWorkspaces(t) {
		if c.of == "random" {
			continue
		}
		for p := forwardPass; p <= weightPass; p++ {
			if c.space[p] < 0 {
				continue
			}
			n++
			if got, sure := c.conv.space(p); got != c.space[p] || !sure {
				t.Errorf("%s %+v pass %d: %d (sure: %v), want %d", c.of, *c.conv, p, got, sure, c.space[p])
			}
		}
	}
	if n == 0 {
		t.Error("nothing is known")
	}
}

// A transposed convolution is the gradient of the input of another, and a row
// is an image.
func TestTransposedWorkspace(t *testing.T) {
	one := []int64{1}
	c := Convolution{[]int64{8, 64, 512}, []int64{128, 64, 3}, []int64{8, 128, 510}, BFloat16, false, false, one, []int64{0}, one, 1}
	d := c
	d.X, d.Y, d.Transposed = c.Y, c.X, true
	forward, _ := d.space(forwardPass)
	input, _ := c.space(inputPass)
	if forward != input || forward == 0 {
		t.Errorf("transposed %d, gradient of the input %d", forward, input)
	}
	forward, _ = c.space(forwardPass)
	input, _ = d.space(inputPass)
	if forward != input {
		t.Errorf("forward %d, transposed gradient of the input %d", forward, input)
	}
}

// PyTorch's own kernels need none.
func TestNativeConvolutions(t *testing.T) {
	one, none := []int64{1, 1}, []int64{0, 0}
	c := Convolution{[]int64{8, 64, 32, 32}, []int64{64, 1, 3, 3}, []int64{8, 64, 30, 30}, Float32, false, false, one, none, one, 64}
	if got, sure := c.space(weightPass); got != 0 || !sure {
		t.Errorf("every channel apart: %d, sure: %v", got, sure)
	}
	c.ChannelsLast = true
	if c.Native() {
		t.Error("with the channels last cuDNN has the kernels")
	}
}

// The rules of PatchConv answer for what they were found for.
func TestPatchesGoByTheirRules(t *testing.T) {
	for _, m := range readConvolutions(t) {
		s := []int64{m.Patch, m.Patch}
		c := Convolution{
			[]int64{m.Batch, m.Channels, m.Height, m.Width},
			[]int64{m.Out, m.Channels, m.Patch, m.Patch},
			[]int64{m.Batch, m.Out, m.Height / m.Patch, m.Width / m.Patch},
			dtypes[m.DType], false, false, s,
			[]int64{0, 0},
			[]int64{1, 1},
			1,
		}
		p := newPatches(c.Type, c.X, c.W, c.Y)
		if got, sure := c.space(forwardPass); !sure && got != p.forward() {
			t.Errorf("%+v: forward %d, want %d", m, got, p.forward())
		}
		if got, sure := c.space(weightPass); !sure && got != p.backward() {
			t.Errorf("%+v: gradient of the weight %d, want %d", m, got, p.backward())
		}
	}
}
