package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// driverCalls returns the calls that the library makes while it serves a load.
func driverCalls(t *testing.T, lines []string, env []string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "calls")
	run(t, "script.c", strings.Join(lines, "\n")+"\n", append(env, "FAKECUDA_CALLS="+file)...)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// training is a load with streams, a graph's pool, memory that is given back, and
// statistics. All blocks are freed at its end.
func training() []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for step := range 3 {
		for i := range 12 {
			add("malloc %d %d %d 0", i, (i+1)*700_000*(step+1), i%2)
		}
		for i := range 6 {
			add("record %d 1", i)
			add("free %d", i)
		}
		if step > 0 {
			add("malloc 21 500000 0 0") // asks whether stream 1 is done with them; else empty waits for it
			add("free 21")
		}
		add("malloc 22 6000000000 0 0") // more than there is
		add("begin 0 7 %d 0", step)
		add("malloc 20 3000000 0 0")
		add("end 0 7 %d", step)
		add("free 20")
		add("release 0 7 %d", step)
		add("empty")
		for i := range 6 {
			add("free %d", i+6)
		}
	}
	return append(lines, "empty", "snapshot 0", "stats 0")
}

// answered is what a call may answer: a number, ok, or an error that names a call of
// the driver.
var answered = regexp.MustCompile(`^(\d+|ok|oom CUDA out of memory.*|oom .*|failed .*\bcu[A-Z][A-Za-z_0-9]+.*)$`)

// Every call of the driver fails, once or for ever, while the library serves memory:
// the process lives on, the error names the call, and no memory is lost.
func TestFaults(t *testing.T) {
	short.Skip(t)
	t.Parallel()
	env := onCUDA(t)
	lines := training()
	for _, conf := range []string{"expandable_segments:True", "expandable_segments:False"} {
		t.Run(conf, func(t *testing.T) {
			t.Parallel()
			env := append(slices.Clone(env), "ASHLAR_CONF="+conf)
			calls := driverCalls(t, lines, env)
			seen := 0
			for _, call := range calls {
				refused := false
				for _, when := range []string{"1:999", "5:2", "3:999:ever"} {
					refused = withFault(t, lines, env, call+":"+when) || refused
				}
				if refused {
					seen++
				}
			}
			t.Logf("%d calls, of which %d are seen to fail: %v", len(calls), seen, calls)
			if len(calls) < 20 || seen < len(calls)/2 {
				t.Errorf("of the calls %v only the failures of %d are seen", calls, seen)
			}
		})
	}
}

// withFault makes the calls of a load while one of the driver fails, and reports whether
// one of them said so.
func withFault(t *testing.T, lines, env []string, fault string) (refused bool) {
	t.Helper()
	out, said := run(t, "script.c", strings.Join(lines, "\n")+"\n", append(env, "FAKECUDA_FAIL="+fault)...)
	answers := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(answers) != len(lines) {
		t.Errorf("%s: %d answers to %d calls: %s", fault, len(answers), len(lines), said)
		return false
	}
	for k, a := range answers[:len(answers)-2] {
		refused = refused || strings.HasPrefix(a, "failed")
		if !answered.MatchString(a) {
			t.Errorf("%s: %s: %s", fault, lines[k], a)
			break
		}
	}
	if !strings.HasSuffix(fault, "ever") {
		nothingLost(t, fault, answers[len(answers)-1])
	}
	return refused
}

// nothingLost reports whether statistics say that no block is in use.
func nothingLost(t *testing.T, what, stats string) {
	t.Helper()
	var all struct {
		Allocated struct {
			All struct{ Current, Peak int64 } `json:"all"`
		} `json:"allocated_bytes"`
	}
	if err := json.Unmarshal([]byte(stats), &all); err != nil {
		t.Errorf("%s: %v: %.200s", what, err, stats)
		return
	}
	if n := all.Allocated.All; n.Current != 0 || n.Peak == 0 {
		t.Errorf("%s: %d bytes are in use after all was freed, at the peak %d", what, n.Current, n.Peak)
	}
}
