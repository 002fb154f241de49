//go:build linux

package run

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/hostmem/variant"
)

// eight is a Python process with seven forked workers, 100 MB each.
const eight = `
import os, time
for n in range(7):
    if os.fork() == 0:
        break
work = bytearray(b"x") * 100_000_000
if n == 6:
    print("up", flush=True)
time.sleep(1000)
`

// cpu is the CPU time of this program, without its children.
func cpu(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// overhead is the share of one core that this program takes to measure eight
// processes, ten times a second, for a time: with the start, and the malloc
// looked up.
func overhead(t testing.TB, d time.Duration) float64 {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	chosen, err := variant.Choose(variant.Baseline)
	if err != nil {
		t.Fatal(err)
	}
	ready, _ := variant.Search(t.Context(), chosen, t.TempDir())
	s := Spec{Command: []string{python, "-c", eight}, Ready: &Ready{Text: "up"}, For: d}
	before, begin := cpu(t), time.Now()
	c, err := Compare(t.Context(), s, ready, 1, nil)
	share := float64(cpu(t)-before) / float64(time.Since(begin))
	if err != nil || c.Results[0].Error != nil || c.Results[0].Processes < 8 || *c.Results[0].PeakRSS < 800e6 {
		t.Fatalf("%+v, %v", c, err)
	}
	n := len(c.Results[0].Typical().Points)
	if n < int(7*d/time.Second) {
		t.Errorf("%d samples in %v", n, d)
	}
	return share
}

// The bar is 1 %, and what is measured is in docs/host.md; here is room for a
// machine that is busy with other things.
func TestOverhead(t *testing.T) {
	if share := overhead(t, 3*time.Second); share > 0.05 {
		t.Errorf("measuring takes %.2f %% of a core", 100*share)
	}
}

// Twenty seconds, of which most runs are much longer.
func BenchmarkOverhead(b *testing.B) {
	var sum float64
	for b.Loop() {
		sum += overhead(b, 20*time.Second)
	}
	b.ReportMetric(100*sum/float64(b.N), "%CPU")
	b.ReportMetric(0, "ns/op")
}
