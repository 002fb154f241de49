package vary_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/vary"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/snapshot"
)

// recorded returns the program of a recording and its complete steps.
func recorded(t *testing.T, path string) (*replay.Program, [][2]int) {
	t.Helper()
	f, err := snapshot.Open(t.Context(), path, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := run.New(f.Traces[0], nil).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Analysis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c.Program, a.Steps.Ranges()
}

// Whatever is varied, every tensor is allocated before it is freed and freed
// once, not much more is live than in the recording, and the program runs.
func TestVariationsAreSound(t *testing.T) {
	var files []string
	for _, glob := range []string{"snapshots", "fresh", "variety"} {
		found, err := filepath.Glob("../../../testdata/" + glob + "/*.gz")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	files = slices.DeleteFunc(files, func(f string) bool {
		return filepath.Base(f) == "stateonly.pickle.gz" || strings.Contains(f, "-tight-") // no events; the beginnings of others
	})
	kinds := map[string]bool{}
	for _, file := range short.Files(t, files, 8) {
		p, steps := recorded(t, file)
		before := live(t, file, p)
		all := vary.Of(p, steps, 1)
		for _, v := range all {
			kinds[v.Name] = true
			made, warm := v.Program()
			name := filepath.Base(file) + ", " + v.Name
			if was := vary.WarmFrom(p, steps); (warm > 0) != (was > 0) && !strings.HasSuffix(v.Name, "left out") {
				t.Errorf("%s: warm from call %d, in the recording %d", name, warm, was)
			}
			peak := live(t, name, made)
			if peak > before*125/100 || peak < before*3/4 && !strings.HasSuffix(v.Name, "left out") {
				t.Errorf("%s: %d bytes live at most, %d in the recording", name, peak, before)
			}
			o, err := made.Run(t.Context(), replay.Conditions{Settings: settings.Default()})
			if err != nil || o.Fails || o.Calls != made.Len() {
				t.Errorf("%s: %v, %+v", name, err, o)
			}
		}
		if len(steps) >= 4 && len(all) < 5 {
			t.Errorf("%s: %d steps and only %d variations", file, len(steps), len(all))
		}
	}
	if len(kinds) < 6 {
		t.Errorf("only %v", kinds)
	}
}

// live checks the order of calls and returns the most bytes that were live.
func live(t *testing.T, name string, p *replay.Program) (peak uint64) {
	t.Helper()
	type state struct {
		size        uint64
		there, gone bool
	}
	tensors := make([]state, p.Tensors())
	now, n := uint64(0), 0
	for _, s := range p.Start.Segments {
		for _, b := range s.Blocks {
			tensors[n] = state{size: b.RequestedSize, there: true}
			now += b.RequestedSize
			n++
		}
	}
	for i := range p.Len() {
		c := p.Call(i)
		switch c.Kind {
		case replay.CallAlloc:
			if x := &tensors[c.Tensor]; x.there {
				t.Fatalf("%s: call %d allocates tensor %d again", name, i, c.Tensor)
			}
			tensors[c.Tensor] = state{size: c.Size, there: true}
			now += c.Size
			peak = max(peak, now)
		case replay.CallFree, replay.CallFreeLater:
			x := &tensors[c.Tensor]
			if !x.there || x.gone {
				t.Fatalf("%s: call %d frees tensor %d, which is not there", name, i, c.Tensor)
			}
			x.gone = true
			now -= x.size
		}
	}
	return peak
}

// A made-up run: two weights, then steps that each make an activation of their
// own size, keep a gradient for the next step, and leave a loss behind.
func stepping(t *testing.T, n int) (*replay.Program, [][2]int) {
	t.Helper()
	const weight, gradient, loss = 4096, 2048, 512
	var calls []replay.Call
	alloc := func(size uint64) int {
		id := 0
		for _, c := range calls {
			if c.Kind == replay.CallAlloc {
				id++
			}
		}
		calls = append(calls, replay.Call{Kind: replay.CallAlloc, Tensor: id, Size: size})
		return id
	}
	free := func(id int) { calls = append(calls, replay.Call{Kind: replay.CallFree, Tensor: id}) }
	alloc(weight)
	alloc(weight)
	var steps [][2]int
	old := -1
	for i := range n {
		begin := len(calls)
		act := alloc(uint64(10_000 * (i + 1)))
		if old >= 0 {
			free(old)
		}
		alloc(loss)
		old = alloc(gradient)
		free(act)
		steps = append(steps, [2]int{begin, len(calls)})
	}
	p, err := replay.NewProgram(settings.Default(), len(calls), func(i int) replay.Call { return calls[i] })
	if err != nil {
		t.Fatal(err)
	}
	return p, steps
}

func first(p *replay.Program, _ int) *replay.Program { return p }

// sequence writes the sizes of a program's calls; frees are negative.
func sequence(p *replay.Program) (out []int) {
	sizes := map[int]int{}
	for i := range p.Len() {
		c := p.Call(i)
		if c.Kind == replay.CallAlloc {
			sizes[c.Tensor] = int(c.Size)
			out = append(out, int(c.Size))
		} else {
			out = append(out, -sizes[c.Tensor])
		}
	}
	return out
}

// What a step makes moves with it, and each step frees the gradient of whichever
// came before it.
func TestStepsMoveWhole(t *testing.T) {
	p, steps := stepping(t, 6)
	want := func(order ...int) (out []int) {
		out = []int{4096, 4096}
		for i, k := range order {
			out = append(out, 10_000*k)
			if i > 0 {
				out = append(out, -2048)
			}
			out = append(out, 512, 2048, -10_000*k)
		}
		return out
	}
	seen := map[string]bool{}
	for _, v := range vary.Of(p, steps, 3) {
		got := sequence(first(v.Program()))
		switch v.Name {
		case "steps in reverse order":
			// What the first step leaves for good stays at the end of whichever is first.
			w := want(6, 5, 4, 3, 2, 1)
			w = slices.Delete(w, len(w)-3, len(w)-2)
			w = slices.Insert(w, 6, 512)
			if !slices.Equal(got, w) {
				t.Errorf("%s: %v, want %v", v.Name, got, w)
			}
		case "1 of 6 steps left out", "2 of 6 steps left out", "3 of 6 steps left out":
			var order []int
			for _, n := range got {
				if n >= 10_000 {
					order = append(order, n/10_000)
				}
			}
			if w := want(order...); !slices.Equal(got, w) || len(order) > 5 {
				t.Errorf("%s: %v, want %v", v.Name, got, w)
			}
		case "sizes +3 %":
			for i, n := range want(1, 2, 3, 4, 5, 6) {
				if n >= 10_000 || n <= -10_000 {
					n = n / 100 * 103
				}
				if got[i] != n {
					t.Errorf("%s: %v", v.Name, got)
					break
				}
			}
		}
		seen[v.Name] = true
	}
	if !seen["steps in reverse order"] || !seen["1 of 6 steps left out"] || !seen["2 of 6 steps left out"] {
		t.Errorf("only %v", seen)
	}
}

// The same seed gives the same variations, another one others.
func TestSeed(t *testing.T) {
	p, steps := stepping(t, 12)
	text := func(seed uint64) (out string) {
		for _, v := range vary.Of(p, steps, seed) {
			out += fmt.Sprintln(v.Name, sequence(first(v.Program())))
		}
		return out
	}
	if one, again := text(1), text(1); one != again {
		t.Error("the same seed, other variations")
	}
	if text(1) == text(2) {
		t.Error("another seed, the same variations")
	}
	if n := len(vary.Of(p, nil, 1)); n != 3 {
		t.Errorf("%d variations without steps", n)
	}
	if at := vary.WarmFrom(p, steps); p.Call(at).Size != 30_000 {
		t.Errorf("warm from call %d, %+v", at, p.Call(at))
	}
}
