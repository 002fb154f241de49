package alloc_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/test/script"
)

var confs = []string{
	"", "expandable_segments:True", "max_split_size_mb:40", "garbage_collection_threshold:0.5",
	"expandable_segments:True,max_split_size_mb:32,garbage_collection_threshold:0.6",
	"roundup_power2_divisions:[1:2,4:4,32:8,>:16]", "roundup_power2_divisions:1", "large_segment_size_mb:32",
	"max_split_size_mb:64,max_non_split_rounding_mb:50,expandable_segments:False",
	"graph_capture_record_stream_reuse:True", "release_lock_on_cudamalloc:True",
}

// scriptGen makes the lines of a random script, one by one. Only its seed is
// drawn by rapid: rapid prefers small numbers, a script should not.
type scriptGen struct {
	*rand.Rand
	names int
}

func (g *scriptGen) oneOf(of ...string) string { return of[g.IntN(len(of))] }

func (g *scriptGen) name() string {
	// Mostly one of the newest blocks: older ones are freed already.
	return fmt.Sprintf("b%d", max(0, g.names-1-g.IntN(1+g.IntN(60))))
}

func (g *scriptGen) size() uint64 {
	if g.IntN(4) == 0 { // sizes at which a rule changes
		borders := []uint64{1, 512, 513, 1 << 20, 1<<20 + 1, 10<<20 - 512, 10 << 20, 20 << 20, 20<<20 + 1, 64 << 20}
		return borders[g.IntN(len(borders))]
	}
	return 1 + g.Uint64N(1<<(1+g.Uint64N(27)))
}

// device begins a script.
func (g *scriptGen) device() string {
	line := "device total=" + g.oneOf("512MiB", "1GiB", "80GiB") + " conf=" + g.oneOf(confs...)
	if g.IntN(2) == 0 {
		line += " events=manual"
	}
	if g.IntN(2) == 0 {
		line += " pytorch=" + g.oneOf("2.3", "2.4", "2.9", "2.10", "2.12", "2.13")
	}
	if g.IntN(2) == 0 {
		line += " limit=" + g.oneOf("104857600", "314572800")
	}
	return line
}

// line draws one operation: mostly allocations and frees, now and then all the
// rest. Many lines make no sense where they stand; that is intended.
func (g *scriptGen) line() string {
	switch p := g.IntN(100); {
	case p < 45:
		g.names++
		return fmt.Sprintf("alloc b%d %d stream=%d thread=%d", g.names-1, g.size(), g.IntN(3), g.IntN(2))
	case p < 72:
		return "free " + g.name()
	case p < 79:
		return fmt.Sprintf("record %s %d", g.name(), g.IntN(4))
	case p < 81:
		return "empty"
	case p < 83:
		return "set " + g.oneOf(confs...)
	case p < 84:
		return g.oneOf("limit 104857600", "limit 314572800", "fraction 1", "fraction 0.5")
	case p < 86:
		return "pool " + g.oneOf("p", "q", "r") + g.oneOf("", " use_on_oom", " no_split")
	case p < 91:
		return g.oneOf("begin ", "end ", "end ", "close ") + g.oneOf("p", "q", "r") + fmt.Sprintf(" thread=%d", g.IntN(2))
	case p < 94:
		return g.oneOf("capture g 0,1", "capture h 2", "capture h 1 pool=g", "endcapture g", "endcapture h", "endcapture g", "release g", "release h")
	case p < 95:
		return g.oneOf("checkpoint x p", "checkpoint y g", "restore x", "restore y")
	case p < 97:
		return g.oneOf("complete all", "complete 1", "complete 3")
	default:
		return "fail " + g.oneOf("malloc", "free", "reserve", "unreserve", "map", "unmap", "record_event", "event_done", "wait_event", "mem_info") +
			fmt.Sprintf(" %d", 1+g.IntN(3))
	}
}

// runLine runs a line and checks the invariants after it. It looks at the
// statistics only now and then: reading them brings them up to date, and that
// they stay right without is part of what is tested.
func runLine(r *script.Runner, line string) error {
	if _, err := r.Run(line); err != nil && !errors.Is(err, script.ErrCommand) {
		return err
	}
	if len(line)%16 == 0 {
		return r.Check()
	}
	return r.Allocator.CheckInvariants()
}

// runScript runs lines on a new device and tears everything down at the end.
func runScript(lines []string) error {
	r := script.New()
	for i, line := range lines {
		if err := runLine(r, line); err != nil {
			return fmt.Errorf("after line %d %q: %w", i+1, line, err)
		}
	}
	return r.Finish()
}

// minimize drops lines from a failing script as long as it still fails.
func minimize(lines []string) []string {
	for size := len(lines) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(lines); {
			shorter := slices.Delete(slices.Clone(lines), at, at+size)
			if runScript(shorter) != nil {
				lines = shorter
			} else {
				at += size
			}
		}
	}
	return lines
}

// TestRandomScripts: whatever the operations, settings, streams, pools and
// driver failures, the invariants hold after every operation, every live block
// can be freed and all memory goes back to the device. 100 checks, the
// default, are 110,000 operations.
func TestRandomScripts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := scriptGen{Rand: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}
		lines := []string{g.device()}
		for range 1100 {
			lines = append(lines, g.line())
		}
		if err := runScript(lines); err != nil {
			lines = minimize(lines)
			t.Fatalf("%v\nA short script that fails:\n%s", runScript(lines), strings.Join(lines, "\n"))
		}
	})
}

// TestFailureAtEveryCall fails each driver call of a run in turn, once with
// out of memory and once with another error.
func TestFailureAtEveryCall(t *testing.T) {
	for _, device := range []string{
		"device total=512MiB events=manual",
		"device total=512MiB events=manual conf=expandable_segments:True",
		"device total=512MiB conf=max_split_size_mb:20,garbage_collection_threshold:0.3 limit=209715200",
	} {
		run := func(n int, failure error) (calls int) {
			r := script.New()
			if err := runLine(r, device); err != nil {
				t.Fatal(err)
			}
			if n > 0 {
				r.Device.FailNth(n, failure)
			}
			for i, line := range strings.Split(busyScript, "\n") {
				if err := runLine(r, line); err != nil {
					t.Fatalf("%s, call %d fails with %v: after line %d %q: %v", device, n, failure, i+1, line, err)
				}
			}
			calls = r.Device.Calls().Total()
			if err := r.Finish(); err != nil {
				t.Fatalf("%s, call %d fails with %v: %v", device, n, failure, err)
			}
			return calls
		}
		calls := run(0, nil)
		if calls < 30 {
			t.Fatalf("%s: only %d driver calls", device, calls)
		}
		for n := 1; n <= calls; n++ {
			run(n, driver.ErrOutOfMemory)
			run(n, errors.New("the driver fails"))
		}
	}
}

// busyScript makes every kind of driver call.
const busyScript = `alloc a 1000
alloc b 3000000 stream=1
alloc c 30000000
alloc d 60000000
alloc e 5000000 stream=2
record a 1
record a 2
record c 2
free a
free c
alloc f 25000000
complete 1
alloc g 2000
complete 2
alloc h 2000
free d
alloc i 70000000
pool p use_on_oom
begin p
alloc j 12000000
alloc k 900
record j 1
free j
end p
alloc l 400
empty
capture g 1
alloc m 40000000 stream=1
record m 2
free m
alloc n 100 stream=2
endcapture g
alloc o 200000000
free f
free i
alloc q 150000000
alloc r 400000000
record e 1
free e
empty
free k
close p
release g
empty
alloc s 900000000
free q
alloc t 300000000
free t
empty
set max_split_size_mb:30
alloc u 50000000
free u
alloc v 35000000
empty`
