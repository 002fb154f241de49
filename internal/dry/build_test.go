package dry

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// plainKernels allocate nothing beside outputs, but for what a test has for an op.
type plainKernels struct {
	special map[string]func(c *eager.Call) ([]eager.Move, bool)
	calls   int
}

func (k *plainKernels) Run(c *eager.Call) ([]eager.Move, bool) {
	k.calls++
	if f := k.special[c.Op]; f != nil {
		return f(c)
	}
	var out []eager.Move
	for i, fresh := range c.Fresh {
		if fresh {
			out = append(out, eager.Move{Bytes: c.Out[i].Bytes, Out: i, Free: -1})
		}
	}
	return out, true
}

// told writes the events of a ledger: +op:bytes and -op:bytes, with the phases.
func told(l *ledger.Ledger) string {
	var out []string
	next := 0
	for i, e := range l.Events {
		for ; next < len(l.Phases) && l.Phases[next].First <= i; next++ {
			out = append(out, fmt.Sprintf("=%s%d", l.Phases[next].Name, l.Phases[next].Step))
		}
		switch {
		case e == ledger.EmptyCache:
			out = append(out, "flush")
		case e < 0:
			out = append(out, fmt.Sprintf("-%s:%d", l.Text(l.Tensors[^e].Op), l.Tensors[^e].Bytes))
		default:
			out = append(out, fmt.Sprintf("+%s:%d", l.Text(l.Tensors[e].Op), l.Tensors[e].Bytes))
		}
	}
	return strings.Join(out, " ")
}

// kindLine defines a kind with some outputs of float32.
func kindLine(id int, op string, elements ...int) string {
	var outs []string
	for _, n := range elements {
		outs = append(outs, fmt.Sprintf(`["float32",[%d],[1],"cuda:0"]`, n))
	}
	return fmt.Sprintf(`["K",%d,%q,[],[%s],[],{}]`, id, op, strings.Join(outs, ","))
}

func TestBuild(t *testing.T) {
	one := kindLine(0, "aten.relu.default", 4)
	for _, tt := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"a call", []string{one, `["b",0,16,"cuda:0"]`, `["o",0,-1,0,0,[],[0]]`, `["d",0]`}, "=run0 +relu:16 -relu:16"},
		{"the CPU does not count", []string{one, `["b",0,16,"cpu"]`, `["o",0,-1,0,0,[],[0]]`, `["d",0]`}, ""},
		{"an empty storage takes none", []string{one, `["b",0,0,"cuda:0"]`, `["o",0,-1,0,0,[],[0]]`}, ""},
		{"a view takes none", []string{one, `["b",0,16,"cuda:0"]`, `["o",0,-1,0,0,[],[0]]`, `["o",0,-1,0,0,[],[0]]`}, "=run0 +relu:16"},
		{"born without a call", []string{`["b",0,16,"cuda:0"]`, `["d",0]`}, "=run0 +storage:16 -storage:16"},
		{"born before another's call", []string{one, `["b",0,32,"cuda:0"]`, `["b",1,16,"cuda:0"]`, `["o",0,-1,0,0,[],[1]]`}, "=run0 +relu:32 +relu:16"},
		{"two views of one storage", []string{kindLine(0, "my.split.default", 2, 2), `["b",0,16,"cuda:0"]`, `["o",0,-1,0,0,[],[0,0]]`}, "=run0 +my.split:16"},
		{"a number again", []string{`["b",0,16,"cuda:0"]`, `["d",0]`, `["b",0,32,"cuda:0"]`}, "=run0 +storage:16 -storage:16 +storage:32"},
		{"resized", []string{`["b",0,16,"cuda:0"]`, `["r",0,64]`, `["r",0,0]`, `["r",0,32]`, `["d",0]`}, "=run0 +storage:16 +resize_:64 -storage:16 -resize_:64 +resize_:32 -resize_:32"},
		{"empty_cache", []string{`["b",0,16,"cuda:0"]`, `["m","empty_cache",null]`, `["d",0]`}, "=run0 +storage:16 flush -storage:16"},
		{
			"the GPU with most",
			[]string{`["b",0,16,"cuda:0"]`, `["b",1,64,"cuda:1"]`, `["d",0]`},
			"=run0 +storage:64",
		},
		{
			"moments",
			[]string{
				`["b",0,1,"cuda:0"]`, `["m","forward","begin"]`, `["b",1,2,"cuda:0"]`, `["m","forward","end"]`, `["b",2,3,"cuda:0"]`,
				`["m","backward","begin"]`, `["m","forward","begin"]`, `["b",3,4,"cuda:0"]`, `["m","forward","end"]`, `["m","backward","end"]`,
				`["m","optimizer","begin"]`, `["b",4,5,"cuda:0"]`, `["m","optimizer","end"]`, `["m","steps",1]`, `["d",0]`, `["b",5,6,"cuda:0"]`,
				`["m","backward","begin"]`, `["b",6,7,"cuda:0"]`, `["m","backward","end"]`, `["m","steps",2]`, `["d",5]`,
			},
			"=build0 +storage:1 =forward1 +storage:2 =loss1 +storage:3 =backward1 +storage:4 =optimizer1 +storage:5 " +
				"=forward2 -storage:1 +storage:6 =backward2 +storage:7 -storage:6",
		},
		{"a forward call without a backward pass", []string{`["m","forward","begin"]`, `["b",0,1,"cuda:0"]`, `["m","forward","end"]`, `["b",1,2,"cuda:0"]`}, "=build0 =forward1 +storage:1 +storage:2"},
	} {
		if got := told(build(read(t, tt.lines...), &plainKernels{}, 0).Ledger); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// What kernels take beside their outputs is in the ledger, in their order; what
// they take for good is a workspace.
func TestBuildMoves(t *testing.T) {
	k := &plainKernels{special: map[string]func(*eager.Call) ([]eager.Move, bool){
		"aten.mm.default": func(c *eager.Call) ([]eager.Move, bool) {
			moves := []eager.Move{{Bytes: 100, Out: -1, Free: -1}, {Bytes: c.Out[0].Bytes, Out: 0, Free: -1}, {Out: -1, Free: 0}}
			if c.Thread == 0 && c.Out[0].Bytes == 16 {
				moves = append([]eager.Move{{Bytes: 1 << 20, Out: -1, Free: -1}}, eager.Move{Bytes: 16, Out: 0, Free: -1})
			}
			return moves, true
		},
		"my.op.default": func(*eager.Call) ([]eager.Move, bool) { return nil, false },
	}}
	r := build(read(
		t, kindLine(0, "aten.mm.default", 4), kindLine(1, "my.op.default", 8),
		`["b",0,16,"cuda:0"]`, `["o",0,-1,0,0,[],[0]]`, `["b",1,16,"cuda:0"]`, `["o",0,-1,1,0,[],[1]]`,
		`["b",2,32,"cuda:0"]`, `["o",1,-1,0,0,[],[2]]`,
	), k, 1<<20)
	if got, want := told(r.Ledger), "=run0 +cuBLAS workspace:1048576 +mm:16 +mm:100 +mm:16 -mm:100 +my.op:32"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if d := cmp.Diff([]Op{{Name: "my.op.default", Count: 1}}, r.Unknown); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]ledger.Term{{Name: "workspace of my.op is not known", High: 32}}, r.Ledger.Uncertain); d != "" {
		t.Error(d)
	}
	if kind := r.Ledger.Tensors[0].Kind; kind != ledger.Workspace {
		t.Errorf("cuBLAS's workspace is of kind %v", kind)
	}
}

// What a sparse result holds is not known, and said.
func TestBuildSparse(t *testing.T) {
	r := build(read(
		t, `["K",0,"aten._embedding_bag_backward.default",[],[["float32",[100,64],null,"cuda:0"]],[],{}]`,
		`["o",0,-1,1,0,[],[-1]]`, `["o",0,-1,1,0,[],[-1]]`,
	), &plainKernels{}, 1<<20)
	if d := cmp.Diff([]Op{{Name: "aten._embedding_bag_backward.default (sparse)", Count: 2}}, r.Unknown); d != "" {
		t.Error(d)
	}
	if got := r.Ledger.Uncertain; len(got) != 1 || got[0].High != 100*64*4 {
		t.Errorf("%+v", got)
	}
}

// Kernels are asked once for calls that are alike, and each time for one that
// takes a workspace for good.
func TestBuildAsksOnce(t *testing.T) {
	lines := []string{kindLine(0, "aten.relu.default", 4)}
	for i := range 10 {
		bytes := 16
		if i == 7 {
			bytes = 48 // the storage is larger than the tensor
		}
		lines = append(lines, fmt.Sprintf(`["b",%d,%d,"cuda:0"]`, i, bytes), fmt.Sprintf(`["o",0,-1,%d,0,[],[%d]]`, i/5, i))
	}
	k := &plainKernels{}
	r := build(read(t, lines...), k, 0)
	if k.calls != 4 { // two threads, and the other size twice: it displaces the first
		t.Errorf("%d calls", k.calls)
	}
	if got := r.Ledger.Tensors[7].Bytes; got != 48 {
		t.Errorf("%d bytes", got)
	}
	k = &plainKernels{special: map[string]func(*eager.Call) ([]eager.Move, bool){
		"aten.relu.default": func(*eager.Call) ([]eager.Move, bool) { return []eager.Move{{Bytes: 1, Out: -1, Free: -1}}, true },
	}}
	if build(read(t, lines...), k, 0); k.calls != 10 {
		t.Errorf("%d calls", k.calls)
	}
}

// Classes may come late, and the last word wins.
func TestBuildClasses(t *testing.T) {
	r := build(read(
		t, `["b",0,16,"cuda:0"]`, `["b",1,16,"cuda:0"]`, `["b",2,16,"cuda:0"]`,
		`["c","input",[0,1]]`, `["c","gradient",[1]]`, `["c","parameter",[9]]`, `["d",2]`, `["c","buffer",[2]]`,
	), &plainKernels{}, 0)
	var got []ledger.Kind
	for _, x := range r.Ledger.Tensors {
		got = append(got, x.Kind)
	}
	if want := []ledger.Kind{ledger.Input, ledger.Gradient, ledger.Temporary}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Without marks the first forward pass begins where it begins to be like the second.
func TestFirstForward(t *testing.T) {
	r := build(mlp(t), &plainKernels{}, 0)
	var got []string
	for _, p := range r.Ledger.Phases {
		got = append(got, fmt.Sprint(p.Name, p.Step))
	}
	if want := "build0 forward1 backward1 optimizer1 forward2 backward2 optimizer2 forward3 backward3"; strings.Join(got, " ") != want {
		t.Errorf("%v", got)
	}
	p := r.Ledger.Phases[1]
	if op := r.Ledger.Text(r.Ledger.Tensors[r.Ledger.Events[p.First]].Op); op != "randn" || r.Steps != 3 {
		t.Errorf("it begins with %s, %d steps", op, r.Steps)
	}
}

// If no later pass is like the first, it begins when the weights are there. Sizes
// may differ from pass to pass.
func TestFirstForwardAlone(t *testing.T) {
	start := []string{
		kindLine(0, "aten.randn.default", 4), kindLine(1, "aten.relu.default", 4), kindLine(2, "aten.relu.default", 8),
		`["b",0,16,"cuda:0"]`, `["o",0,-1,0,0,[],[0]]`, `["b",1,16,"cuda:0"]`, `["o",1,-1,0,0,[],[1]]`,
	}
	once := append(slices.Clone(start), `["c","parameter",[0]]`, `["m","backward","begin"]`, `["m","backward","end"]`)
	again := append(
		slices.Clone(start), `["m","backward","begin"]`, `["m","backward","end"]`, `["m","steps",1]`, `["b",2,32,"cuda:0"]`, `["o",2,-1,0,0,[],[2]]`,
		`["m","backward","begin"]`,
	)
	for _, tt := range []struct {
		lines []string
		want  string
	}{
		{once, "=build0 +randn:16 =forward1 +relu:16"},
		{again, "=build0 +randn:16 =forward1 +relu:16 =backward1 =forward2 +relu:32"},
	} {
		if got := told(build(read(t, tt.lines...), &plainKernels{}, 0).Ledger); got != tt.want {
			t.Errorf("%s\nwant %s", got, tt.want)
		}
	}
}
