//go:build linux && !race

package run

import (
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hostmem/variant"
)

// eight is a Python process with seven forked workers, each with so many MB.
const eight = `
import os, sys, time
for n in range(7):
    if os.fork() == 0:
        break
work = bytearray(b"x") * (1_000_000 * int(sys.argv[1]))
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
func overhead(t testing.TB, megabytes int, d time.Duration) (share, seconds float64) {
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
	s := Spec{Command: []string{python, "-c", eight, strconv.Itoa(megabytes)}, Ready: &Ready{Text: "up"}, For: d}
	before, begin := cpu(t), time.Now()
	c, err := Compare(t.Context(), s, ready, 1, nil)
	share, seconds = float64(cpu(t)-before)/float64(time.Since(begin)), time.Since(begin).Seconds()
	if err != nil || c.Results[0].Error != nil || c.Results[0].Processes < 8 || *c.Results[0].PeakRSS < uint64(8e6*megabytes) {
		t.Fatalf("%+v, %v", c, err)
	}
	t.Logf("%d samples in %v", len(c.Results[0].Typical().Points), d)
	return share, seconds
}

// In its first seconds a run is sampled more often, and its malloc is looked up;
// afterwards there are ten samples a second.
func BenchmarkOverhead(b *testing.B) {
	var whole, after float64
	for b.Loop() {
		young, t1 := overhead(b, 100, 4*time.Second)
		all, t2 := overhead(b, 100, 24*time.Second)
		whole += all
		after += (all*t2 - young*t1) / (t2 - t1)
	}
	b.ReportMetric(100*whole/float64(b.N), "%CPU-in-24-s")
	b.ReportMetric(100*after/float64(b.N), "%CPU-after-4-s")
	b.ReportMetric(0, "ns/op")
}
