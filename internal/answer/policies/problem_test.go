package policies

import (
	"compress/gzip"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/policy/placement"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

func problem(t testing.TB, name string) *placement.Problem {
	t.Helper()
	f, err := os.Open("../../../testdata/placement/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	p, err := placement.Read(r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Best fit over the load, as others have found it.
func TestBestFitOnProblems(t *testing.T) {
	short.Skip(t)
	for name, want := range map[string]float64{
		"resnet50.csv": 1.003, "pangu_2.6B.csv.gz": 1.119, "G_1.csv": 1.003, "S_1.csv.gz": 1.084, "Y_1.csv.gz": 1.021,
	} {
		a, err := AskProblem(t.Context(), problem(t, name), Question{Policies: []string{"best-fit"}, NoLimits: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := *a.Results[0].ReservedOverLive; math.Abs(got-want) > 0.002 {
			t.Errorf("%s: best fit needs %.4f of the load, want %.3f", name, got, want)
		}
	}
}

// Every policy answers about a problem, or says why not.
func TestProblem(t *testing.T) {
	a, err := AskProblem(t.Context(), problem(t, "A.1048576.csv"), Question{Budget: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	aboveBound(t, a)
	for _, r := range a.Results {
		if none := slices.Contains([]string{Arena, Managed, ManagedPrefetch}, r.Policy); none != (r.WhyNot != nil) {
			t.Errorf("%+v", r)
		}
	}
	if a.LowerBound != 1<<20 || a.SelfCheck != nil {
		t.Errorf("%+v", a)
	}
}

// hard are the problems of google/minimalloc, with a minute for each: make
// policies-hard.
func TestHardProblems(t *testing.T) {
	if *table == "" {
		t.Skip("eleven minutes: make policies-hard")
	}
	var all []float64
	var doc strings.Builder
	doc.WriteString("| problem | buffers | greedy | static plan, 60 s |\n|---|---|---|---|\n")
	for _, name := range strings.Split("ABCDEFGHIJK", "") {
		p := problem(t, name+".1048576.csv")
		r, err := placement.Solve(t.Context(), p.Buffers, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if err := placement.Check(p.Buffers, r.Plan); err != nil {
			t.Fatal(err)
		}
		load := float64(placement.MaxLoad(p.Buffers))
		over := float64(r.Height) / load
		all = append(all, over)
		row(&doc, name, len(p.IDs), float64(r.Greedy)/load, over)
		if over > 1.20 {
			t.Errorf("%s: %.4f", name, over)
		}
	}
	slices.Sort(all)
	if median := all[len(all)/2]; median > 1.10 {
		t.Errorf("the median is %.4f", median)
	}
	writeTable(t, doc.String())
}
