package policies

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// The pool of cudaMallocAsync against eleven runs that an H200 made under it:
// reserved within 3 % on eight of the ten workloads, 8 % on all, and closer than
// PyTorch's own allocator on eight.
func TestAsyncAgainstTheDevice(t *testing.T) {
	f, err := os.Open("../../../testdata/async/measured.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	runs, near, closer, tooFar := 0, 0, 0, 0
	for d := json.NewDecoder(f); d.More(); {
		var m struct {
			Name     string
			Reserved uint64 `json:"reserved_mib"`
		}
		if err := d.Decode(&m); err != nil {
			t.Fatal(err)
		}
		file := "async/" + m.Name
		if m.Name == "serve_generate" {
			file = "snapshots/serve_generate-default"
		}
		a := ask(t, checked(t, file), Question{Policies: []string{Caching, "async:max"}, NoLimits: true})
		off := func(policy string) float64 {
			return float64(*a.find(t, policy).PeakReserved)/float64(m.Reserved<<20) - 1
		}
		pool, caching := off("async:max"), off(Caching)
		t.Logf("%s: %d MiB, the model %d (%+.1f %%), caching %d (%+.1f %%)", m.Name, m.Reserved,
			*a.find(t, "async:max").PeakReserved>>20, 100*pool, *a.find(t, Caching).PeakReserved>>20, 100*caching)
		runs++
		if math.Abs(pool) > 0.08 {
			tooFar++
		}
		if m.Name == "two_streams" { // not one of the ten
			continue
		}
		if math.Abs(pool) <= 0.03 {
			near++
		}
		if math.Abs(pool) < math.Abs(caching) {
			closer++
		}
	}
	if runs != 11 || tooFar > 0 || near < 8 || closer < 8 {
		t.Errorf("%d runs: %d beyond 8 %%; of the ten %d within 3 %% and %d closer than caching", runs, tooFar, near, closer)
	}
}
