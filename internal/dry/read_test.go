package dry

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
)

const header = `{"ashlar_dry":1,"torch":"2.11.0","device":{"name":"NVIDIA H200","total_bytes":150109880320,"capability":[9,0],"processors":132},"argv":["t.py"]}` + "\n"

// read reads a ledger of some lines.
func read(t testing.TB, lines ...string) *Recording {
	t.Helper()
	r, err := Read(t.Context(), strings.NewReader(header+strings.Join(lines, "\n")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mlp(t testing.TB) *Recording {
	t.Helper()
	f, err := os.Open("../../testdata/dry/mlp.dry")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := Read(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRead(t *testing.T) {
	r := mlp(t)
	if r.Events != 121 || r.Ended != "steps" || r.Cut != "" || r.Header.Device.Processors != 132 || r.World.Size != 1 {
		t.Errorf("%+v", r.Header)
	}
	if d := cmp.Diff([]Note{{"item() of a float32: 0", 3, "train.py:14 <module>"}}, r.Notes); d != "" {
		t.Error(d)
	}
	if got := r.where(1); got != "train.py:11 forward" {
		t.Errorf("the line of a stack with frames of torch is %q", got)
	}
}

// Whatever writes the file may put spaces between the parts of a line.
func TestReadSpaces(t *testing.T) {
	r := read(t, ` [ "b" , 0, 512 ,"cuda:0" ] `, `["K", 0, "aten.add.Tensor", [], [["torch.float32", [2, 64], [64, 1], "cuda:0"]], [1, {"t": 0}, [{"t": 1}]], {"alpha": 2}]`, `["o", 0, -1, 1, 2, [ ], [ 0 ]]`)
	k := r.kinds[0]
	want := kind{
		defined: true, op: "aten.add.Tensor", in: []eager.Meta{},
		out:    []eager.Meta{{DType: eager.Float32, Known: true, Shape: []int64{2, 64}, Stride: []int64{64, 1}}},
		args:   []any{1.0, eager.Ref(0), []any{eager.Ref(1)}},
		kwargs: map[string]any{"alpha": 2.0},
	}
	if d := cmp.Diff(want, k, cmp.AllowUnexported(kind{})); d != "" {
		t.Error(d)
	}
	if e := r.events[1]; e.thread != 1 || e.stream != 2 || e.b != -1 {
		t.Errorf("%+v", e)
	}
}

func TestReadCut(t *testing.T) {
	whole, err := os.ReadFile("../../testdata/dry/mlp.dry")
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(whole)
	z.Close()
	for _, tt := range []struct {
		name string
		file []byte
		want string
	}{
		{"whole", whole, ""},
		{"compressed", packed.Bytes(), ""},
		{"cut in a line", whole[:len(whole)-7], "the file ends in the middle of line 146"},
		{"cut between lines", whole[:bytes.LastIndexByte(whole[:len(whole)-1], '\n')+1], ""},
		{"compressed and cut", packed.Bytes()[:packed.Len()*2/3], "in the middle of its compressed data"},
	} {
		r, err := Read(t.Context(), bytes.NewReader(tt.file))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if !strings.Contains(r.Cut, tt.want) || tt.want == "" && r.Cut != "" {
			t.Errorf("%s: %q, want %q", tt.name, r.Cut, tt.want)
		}
	}
}

func TestReadProblems(t *testing.T) {
	kind := `["K",0,"aten.add.Tensor",[["float32",[4],[1],"cuda:0"]],[["float32",[4],[1],"cuda:0"]],[],{}]`
	born := `["b",0,16,"cuda:0"]`
	for _, tt := range []struct {
		name, file, want string
		line             int
	}{
		{"nothing", "", "the file is empty", 1},
		{"a long line", strings.Repeat("x", maxLine+1), "the line is longer than 16 MiB", 1},
		{"a snapshot", "\x80\x04\x95", "the file is a pickle", 1},
		{"no ledger", "import torch\n", "is not the beginning of a dry run's ledger", 1},
		{"an array first", "[1]\n", "is not the beginning", 1},
		{"other JSON", "{}\n", `there is no "ashlar_dry"`, 1},
		{"version", `{"ashlar_dry":2}` + "\n", "of version 2, and this ashlar reads version 1", 1},
		{"device", `{"ashlar_dry":1,"device":{"total_bytes":-1}}` + "\n", "negative", 1},
		{"text", header + "abc\n", `"abc" is not a line of a dry run's ledger`, 2},
		{"a letter of its own", header + `["q",1]` + "\n", `"q" lines are not of version 1`, 2},
		{"negative size", header + `["b",0,-5,"cuda:0"]` + "\n", "has -5 bytes", 2},
		{"absurd size", header + `["b",0,9007199254740993,"cuda:0"]` + "\n", "which no storage can have", 2},
		{"no number", header + `["b",0,99999999999999999999,"cuda:0"]` + "\n", "is not a line", 2},
		{"more than any GPU", header + `["b",0,4398046511104,"cuda:0"]` + "\n" + `["b",1,4398046511104,"cuda:0"]` + "\n" + `["b",2,1,"cuda:0"]` + "\n", "allocated at a time", 4},
		{"born twice", header + born + "\n" + born + "\n", "born a second time", 3},
		{"negative storage", header + `["b",-1,16,"cuda:0"]` + "\n", "count up from 0", 2},
		{"dies unborn", header + `["d",7]` + "\n", "storage 7 dies, but it was never born", 2},
		{"dies twice", header + born + "\n" + `["d",0]` + "\n" + `["d",0]` + "\n", "it is gone already", 4},
		{"resized unborn", header + `["r",7,1]` + "\n", "storage 7 is resized, but it was never born", 2},
		{"resized to less than nothing", header + born + "\n" + `["r",0,-1]` + "\n", "-1 bytes", 3},
		{"no kind", header + `["o",0,-1,0,0,[],[]]` + "\n", "a call of kind 0, which no line before defines", 2},
		{"kind twice", header + kind + "\n" + kind + "\n", "defined a second time", 3},
		{"other outputs", header + kind + "\n" + `["o",0,-1,0,0,[-1],[]]` + "\n", "1 inputs and 0 outputs, but its kind has 1 and 1", 3},
		{"unknown output", header + kind + "\n" + `["o",0,-1,0,0,[-1],[3]]` + "\n", "storage 3 is made by aten.add.Tensor, but it was never born", 3},
		{"no stack", header + kind + "\n" + `["o",0,5,0,0,[-1],[-1]]` + "\n", "has stack 5", 3},
		{"no thread", header + kind + "\n" + `["o",0,-1,-1,0,[-1],[-1]]` + "\n", "on thread -1", 3},
		{"no frame", header + `["S",0,[3]]` + "\n", "stack 0 has frame 3", 2},
		{"far frame", header + `["F",4000000,"a.py",1,"f"]` + "\n", "count up from 0", 2},
		{"shape", header + `["K",0,"a.b.c",[["float32",[-4],null,"cuda:0"]],[],[],{}]` + "\n", "which cannot be", 2},
		{"workspace", header + `["K",0,"a.b.c",[],[],[],{},[-2]]` + "\n", "a workspace of -2 bytes", 2},
		{"class", header + `["c","toy",[]]` + "\n", `class "toy"`, 2},
		{"step", header + `["m","steps",-1]` + "\n", "step -1 is done", 2},
		{"a frame of three", header + `["F",0,"a.py"]` + "\n", "is not a line", 2},
	} {
		_, err := Read(t.Context(), strings.NewReader(tt.file))
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if e.Line != tt.line || !strings.Contains(e.Text, tt.want) {
			t.Errorf("%s: %v, want line %d, %q", tt.name, err, tt.line, tt.want)
		}
	}
}

// Numbers of storages that are far from each other take no memory.
func TestReadFarStorages(t *testing.T) {
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf(`["b",%d,16,"cuda:0"]`, int64(i)*1e12))
	}
	for i := range 100 {
		lines = append(lines, fmt.Sprintf(`["d",%d]`, int64(i)*1e12))
	}
	if r := read(t, lines...); len(r.storages) != 100 || len(r.events) != 200 {
		t.Errorf("%d storages", len(r.storages))
	}
}

func TestReadInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	long := header + strings.Repeat(`["m","synchronize",null]`+"\n", 10000)
	if _, err := Read(ctx, strings.NewReader(long)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
