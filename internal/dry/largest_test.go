package dry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan"
)

const mib = 1 << 20

// made is a script with a weight of 64 MiB that keeps some MiB for each value.
type made struct {
	t     *testing.T
	bytes func(value int64) int64 // what it keeps
	extra func(value int64) int   // calls that it makes besides
	runs  []int64
	fails int64 // the value with which it fails
}

func (m *made) Record(_ context.Context, v *Variation) (*Recording, error) {
	m.runs = append(m.runs, v.Value)
	return m.recording(v.Value), nil
}

func (m *made) recording(value int64) *Recording {
	n := m.bytes(value)
	lines := []string{
		`["b",0,67108864,"cuda:0"]`, `["c","parameter",[0]]`,
		fmt.Sprintf(`["K",0,"aten.relu.default",[],[["uint8",[%d],[1],"cuda:0"]],[%d,0.5],{"dim":[0,%d]}]`, n, value, n),
		fmt.Sprintf(`["b",1,%d,"cuda:0"]`, n), `["o",0,-1,0,0,[],[1]]`,
	}
	if m.extra != nil {
		for i := range m.extra(value) {
			lines = append(lines, fmt.Sprintf(`["b",%d,512,"cuda:0"]`, i+2))
		}
	}
	if value == m.fails {
		lines = append(lines, `["m","end","error: ValueError: no"]`)
	}
	return read(m.t, append(lines, `["m","steps",1]`)...)
}

func under(limit uint64) func(*Recording) (Question, error) {
	return func(r *Recording) (Question, error) {
		return Question{Recording: r, Capacity: plan.Capacity{Limit: limit}}, nil
	}
}

func TestFindLargest(t *testing.T) {
	perValue := func(v int64) int64 { return v * 10 * mib }
	for _, tt := range []struct {
		name         string
		script       *made
		limit        uint64
		value, next  int64
		runs         []int64
		nextRun      bool
		interpolated bool
	}{
		{"straight lines", &made{bytes: perValue}, 1064 * mib, 100, 101, []int64{2, 4, 100}, false, true},
		{"the first values", &made{bytes: perValue}, 94 * mib, 3, 4, []int64{2, 3, 4}, true, true},
		{"only one", &made{bytes: perValue}, 75 * mib, 1, 2, []int64{1, 2, 4}, true, false},
		{"nothing fits", &made{bytes: perValue}, 70 * mib, 0, 1, []int64{1, 2, 4}, true, false},
		{"a curve", &made{bytes: func(v int64) int64 { return v * v * mib }}, 1064 * mib, 31, 32, []int64{2, 4, 31, 168}, false, true},
		{"sizes that are rounded", &made{bytes: func(v int64) int64 { return v*10*mib + v/3 }}, 1066 * mib, 100, 101, nil, true, true},
		{"other calls with other values", &made{bytes: perValue, extra: func(v int64) int { return int(v % 7) }}, 1068 * mib, 100, 101, nil, true, false},
	} {
		tt.script.t = t
		l, rec, err := FindLargest(t.Context(), tt.script, "batch", Variation{Args: []string{"{}"}}, under(tt.limit))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if l.Value != tt.value || l.Next != tt.next || l.NextRun != tt.nextRun || (l.Interpolated > 0) != tt.interpolated || l.Of != "batch" {
			t.Errorf("%s: %+v", tt.name, l)
		}
		if tt.runs != nil && !slices.Equal(l.Runs, tt.runs) {
			t.Errorf("%s: runs %v, want %v", tt.name, l.Runs, tt.runs)
		}
		if len(l.Runs) > mostRuns || len(tt.script.runs) != len(l.Runs) {
			t.Errorf("%s: runs %v", tt.name, tt.script.runs)
		}
		if want := max(l.Value, 1); rec == nil || rec.storages[1].bytes != tt.script.bytes(want) {
			t.Errorf("%s: not the recording of %d", tt.name, want)
		}
		if l.Why != "it runs out of memory in run" {
			t.Errorf("%s: %q", tt.name, l.Why)
		}
	}
}

func TestFindLargestProblems(t *testing.T) {
	s := &made{t: t, bytes: func(v int64) int64 { return v * mib }, fails: 4}
	if _, _, err := FindLargest(t.Context(), s, "batch", Variation{}, under(200*mib)); err == nil || !strings.Contains(err.Error(), "with the value 4: the script failed: ValueError: no") {
		t.Error(err)
	}
	s.fails = 0
	if _, _, err := FindLargest(t.Context(), s, "batch", Variation{}, under(0)); err == nil || !strings.Contains(err.Error(), "needs something to fit into") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := FindLargest(ctx, s, "batch", Variation{}, under(200*mib)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Sizes between two recordings are those of a third.
func TestInterpolate(t *testing.T) {
	m := &made{t: t, bytes: func(v int64) int64 { return v*10*mib + 512 }}
	got, exact, err := interpolate([]sample{{3, m.recording(3)}, {5, m.recording(5)}}, 12)
	if err != nil || !exact {
		t.Fatal(exact, err)
	}
	m.bytes = func(v int64) int64 { return v*v*mib + v*512 + 3 }
	square, exact, err := interpolate([]sample{{3, m.recording(3)}, {5, m.recording(5)}, {900, m.recording(900)}}, 700)
	if err != nil || !exact || square.storages[1].bytes != m.bytes(700) {
		t.Errorf("%v, %+v, want %d", err, square.storages, m.bytes(700))
	}
	m.bytes = func(v int64) int64 { return v*10*mib + 512 }
	want := m.recording(12)
	if got.storages[1] != want.storages[1] {
		t.Errorf("%+v, want %+v", got.storages[1], want.storages[1])
	}
	if g, w := fmt.Sprint(got.kinds), fmt.Sprint(want.kinds); g != w {
		t.Errorf("%s\nwant %s", g, w)
	}
}

func TestInterpolateRefuses(t *testing.T) {
	base := []string{kindLine(0, "aten.relu.default", 4), `["b",0,16,"cuda:0"]`, `["o",0,-1,0,0,[],[0]]`, `["d",0]`}
	other := func(i int, line string) *Recording {
		lines := slices.Clone(base)
		lines[i] = line
		return read(t, lines...)
	}
	for _, tt := range []struct {
		name string
		rec  *Recording
	}{
		{"an event more", read(t, append(base, `["m","empty_cache",null]`)...)},
		{"another op", other(0, kindLine(0, "aten.gelu.default", 4))},
		{"another dtype", other(0, strings.Replace(base[0], "float32", "float16", 1))},
		{"another shape", other(0, strings.Replace(base[0], "[4]", "[2,2]", 1))},
		{"another argument", other(0, strings.Replace(base[0], "[],{}]", `["a"],{}]`, 1))},
		{"another thread", other(2, `["o",0,-1,1,0,[],[0]]`)},
		{"another device", other(1, `["b",0,16,"cpu"]`)},
		{"another line", other(3, `["m","empty_cache",null]`)},
	} {
		if _, _, err := interpolate([]sample{{1, read(t, base...)}, {2, tt.rec}}, 3); !errors.Is(err, errOther) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if _, _, err := interpolate([]sample{{1, other(1, `["b",0,400,"cuda:0"]`)}, {2, other(1, `["b",0,16,"cuda:0"]`)}}, 3); !errors.Is(err, errOther) {
		t.Errorf("a negative size: %v", err)
	}
}

func TestParseVariation(t *testing.T) {
	for _, tt := range []struct {
		of, template, args string
		name, gives, env   string
		err                string
	}{
		{of: "batch=--batch-size", args: "t.py", name: "batch", gives: "t.py --batch-size 8"},
		{of: "batch=BATCH", args: "t.py", name: "batch", gives: "t.py", env: "BATCH=8"},
		{of: "batch", template: "--batch-size {}", args: "t.py -x", name: "batch", gives: "t.py -x --batch-size 8"},
		{of: "batch", template: "--batch-size={}", args: "t.py", name: "batch", gives: "t.py --batch-size=8"},
		{of: "batch", template: "train.batch={} --x", args: "t.py", name: "batch", gives: "t.py train.batch=8 --x"},
		{of: "batch", template: "BATCH={}", args: "t.py", name: "batch", gives: "t.py", env: "BATCH=8"},
		{of: "seq", args: "t.py --seq {}", name: "seq", gives: "t.py --seq 8"},
		{of: "", err: "name what is varied"},
		{of: "batch", args: "t.py", err: "say how the script is given its value"},
		{of: "batch=", args: "t.py", err: "no argument after ="},
		{of: "batch=--b", template: "--b {}", err: "say the same"},
		{of: "batch", template: "--b", err: "has no {}"},
		{of: "batch", template: "--b {}", args: "t.py {}", err: "have {} already"},
	} {
		name, v, err := ParseVariation(tt.of, tt.template, strings.Fields(tt.args))
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s %q: %v", tt.of, tt.template, err)
			}
			continue
		}
		args, env := v.With(8).Apply(strings.Fields(tt.args), []string{"A=1"})
		if err != nil || name != tt.name || strings.Join(args, " ") != tt.gives || strings.Join(env, " ") != strings.TrimSpace("A=1 "+tt.env) {
			t.Errorf("%s %q: %s, %q, %q, %v", tt.of, tt.template, name, args, env, err)
		}
	}
}
