package dry

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/plan/cards"
	"github.com/ashlar-mem/ashlar/internal/run"
)

func TestAsk(t *testing.T) {
	r := mlp(t)
	p, a, err := Ask(t.Context(), Question{Recording: r, Capacity: plan.Capacity{Card: r.Card()}, Points: 20})
	if err != nil {
		t.Fatal(err)
	}
	// Two weights and their state, the gradients, the batch and what the layers keep.
	const least = 28 * mib
	if a.PeakRequested < least || a.PeakAllocated < a.PeakRequested || a.PeakReserved < a.PeakAllocated || a.SmallestLimit > a.PeakReserved {
		t.Errorf("%+v", a.Outcome)
	}
	if !*a.Fits || a.BindingPhase != "backward" || a.Steps != 3 || a.Events != 121 || a.Card != "NVIDIA H200" || a.Ended != "steps" {
		t.Errorf("%+v", a)
	}
	parts := map[string]uint64{}
	var sum uint64
	for _, c := range a.Components {
		parts[c.Name] = c.Bytes
		sum += c.Bytes
	}
	if parts["parameters"] != 8*mib || parts["optimizer state"] != 8*mib || parts["inputs"] != 2*mib || sum != a.PeakAllocated {
		t.Errorf("%v", a.Components)
	}
	if i := slices.IndexFunc(a.Lines, func(l Line) bool { return l.Where == "train.py:5 <module>" }); i < 0 || a.Lines[i].Bytes != 8*mib || a.Lines[i].Count != 2 || a.Lines[i].Mostly != "parameters" {
		t.Errorf("%+v", a.Lines)
	}
	if len(a.Timeline.Allocated) != 20 || slices.Max(a.Timeline.Allocated) != a.PeakAllocated || a.Timeline.Phases[0].Name != "build" {
		t.Errorf("%+v", a.Timeline)
	}
	if a.Range.Low > a.PeakAllocated || a.Range.High <= a.PeakAllocated {
		t.Errorf("%+v", a.Range)
	}

	// The run as a snapshot has the script's stacks, and is the run.
	tr, err := p.Trace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	against, err := p.Compare(t.Context(), run.New(tr, nil), 10)
	if err != nil {
		t.Fatal(err)
	}
	if against.Covered != 1 || against.Missing != 0 || against.Extra != 0 {
		t.Errorf("%+v", against)
	}
	for _, peak := range against.Peaks {
		if *peak.Measured != peak.Planned {
			t.Errorf("%+v", peak)
		}
	}
}

// A run that does not fit ends at a request that has an op and a line.
func TestAskFails(t *testing.T) {
	_, free, err := Ask(t.Context(), Question{Recording: mlp(t), NoLevers: true})
	if err != nil {
		t.Fatal(err)
	}
	_, a, err := Ask(t.Context(), Question{Recording: mlp(t), Capacity: plan.Capacity{Limit: free.SmallestLimit - 4*mib}})
	if err != nil {
		t.Fatal(err)
	}
	if f := a.Failure; *a.Fits || f == nil || f.Op == "" || !strings.HasPrefix(f.Module, "train.py:") || *a.Headroom >= 0 {
		t.Errorf("%+v, %+v", a.Outcome, a.Failure)
	}
}

// A recording is compared with the whole of a dry run, however its steps differ.
func TestCompareOtherSteps(t *testing.T) {
	var lines []string
	for i := range 9 {
		lines = append(
			lines, `["m","backward","begin"]`, fmt.Sprintf(`["b",%d,%d,"cuda:0"]`, i, (2+i)*mib), `["m","backward","end"]`,
			`["m","optimizer","begin"]`, fmt.Sprintf(`["d",%d]`, i), `["m","optimizer","end"]`, fmt.Sprintf(`["m","steps",%d]`, i+1),
		)
	}
	q := Question{Recording: read(t, lines...)}
	p, err := q.Play(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tr, err := p.Trace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.Compare(t.Context(), run.New(tr, nil), 0)
	if err != nil {
		t.Fatal(err)
	}
	if a.Covered != 1 || a.Extra != 0 || len(a.Notes) > 0 || len(a.Parts) != 9 {
		t.Errorf("%+v", a)
	}
}

// A script that fails early is told by its error.
func TestAskFailedEarly(t *testing.T) {
	_, _, err := Ask(t.Context(), Question{Recording: read(t, `["m","end","error: FileNotFoundError: missing.py"]`)})
	if err == nil || !strings.Contains(err.Error(), "failed before it allocated anything on a GPU: FileNotFoundError") {
		t.Error(err)
	}
}

func TestAskNothing(t *testing.T) {
	if _, _, err := Ask(t.Context(), Question{Recording: read(t, `["b",0,16,"cpu"]`)}); err == nil || !strings.Contains(err.Error(), "nothing was allocated on a GPU") {
		t.Error(err)
	}
}

// What is not certain is said.
func TestAskNotes(t *testing.T) {
	r := read(t, `["b",0,1048576,"cuda:0"]`, `["b",1,4,"cuda:1"]`, `["m","save","out.pt"]`, `["u","my.op",-1]`, `["u","my.op",-1]`, `["m","end","error: boom"]`)
	r.Cut = "the file ends"
	card, _ := cards.Find("a100-40")
	_, other, err := Ask(t.Context(), Question{Recording: r, Capacity: plan.Capacity{Card: &card}})
	if err != nil || len(other.Assumed) != 1 || !strings.Contains(other.Assumed[0], "the kernels are those of NVIDIA H200 (compute capability 9.0)") {
		t.Errorf("%v, %+v", err, other)
	}
	_, a, err := Ask(t.Context(), Question{Recording: r})
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(a.NotModelled, "\n")
	for _, want := range []string{"the file ends", "the other 1 GPUs", `"out.pt"`} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in %q", want, all)
		}
	}
	if len(a.Unknown) != 1 || a.Unknown[0].Count != 2 || a.Ended != "error: boom" || a.Fits != nil || len(a.Assumed) > 0 {
		t.Errorf("%+v", a)
	}
}

// A cache that is emptied between steps reserves less, and so does another setting;
// both are replayed.
func TestLevers(t *testing.T) {
	// A block of 30 MiB is followed in each step by one of 32 MiB, which does not fit
	// into its segment.
	r := read(
		t, `["b",0,31457280,"cuda:0"]`, `["d",0]`, `["m","steps",1]`,
		`["b",1,33554432,"cuda:0"]`, `["d",1]`, `["m","steps",2]`, `["b",2,35651584,"cuda:0"]`, `["d",2]`,
	)
	_, a, err := Ask(t.Context(), Question{Recording: r})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range a.Levers {
		names = append(names, l.Name)
		if l.Of != "reserved" || l.Saving == 0 {
			t.Errorf("%+v", l)
		}
	}
	if want := []string{"empty the cache after each step", "expandable segments"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if got := a.PeakReserved - a.Levers[0].Saving; got != 34<<20 {
		t.Errorf("%d reserved with an emptied cache", got)
	}
}

func TestCard(t *testing.T) {
	h := Header{Device: Device{Name: "NVIDIA H200", Total: 1 << 37, Capability: []int{9, 0}}}
	if c := h.Card(); c.Name != "h200" || c.TotalBytes != 1<<37 || c.Total != cards.Given {
		t.Errorf("%+v", c)
	}
	h.Device.Name, h.Device.Capability = "Toy", []int{8, 6}
	if c := h.Card(); c.Title != "Toy" || c.TotalBytes != 1<<37 || c.Minor != 6 || c.Taken != "" {
		t.Errorf("%+v", c)
	}
	if d := h.Kernels(); d.Capability != 86 || d.BlasWorkspace >= 32<<20 {
		t.Errorf("%+v", d)
	}
	if h.Device.Total = 0; h.Card() != nil {
		t.Error("a card without memory")
	}
}
