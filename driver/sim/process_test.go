package sim

import (
	"encoding/json"
	"errors"
	"strconv"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/jsonl"
)

// tracedRun is all device memory that a process took and gave back, the
// allocator's segments and others', as its system calls show it.
type tracedRun struct {
	Case   string        `json:"case"`
	Ranges []tracedRange `json:"ranges"`
}

// tracedRange is written as [what, bytes, address].
type tracedRange struct {
	what string // segment, outside, free
	size uint64
	addr uint64
}

func (r *tracedRange) UnmarshalJSON(data []byte) error {
	var addr string
	if err := json.Unmarshal(data, &[]any{&r.what, &r.size, &addr}); err != nil {
		return err
	}
	var err error
	r.addr, err = strconv.ParseUint(addr, 16, 64)
	return err
}

func tracedRuns(t *testing.T) []tracedRun {
	t.Helper()
	return jsonl.Must[tracedRun](t, "../../testdata/plan/traced.jsonl.gz")
}

// Every range of every traced run lies in the chunk and at the place that the
// rules give it. Where a new chunk goes is the kernel's choice, among the holes
// that the process's own mappings leave: chunks are compared, not their places.
func TestTracedRanges(t *testing.T) {
	segments, outside := 0, 0
	for _, run := range tracedRuns(t) {
		a := newAddressSpace()
		a.chunks = []*chunk{} // nothing is there yet
		places := map[*chunk]uint64{}
		ours := map[uint64]uint64{} // traced address -> the model's
		for i, r := range run.Ranges {
			if r.what == "free" {
				a.giveBack(ours[r.addr])
				continue
			}
			known := map[*chunk]bool{}
			for _, c := range a.chunks {
				known[c] = true
			}
			got, ok := a.take(r.size)
			if !ok {
				t.Fatal(run.Case, "no addresses")
			}
			c := a.segments.Get(got).chunk
			if !known[c] {
				places[c] = r.addr
			}
			if want := places[c] + got - c.start; want != r.addr {
				t.Errorf("%s: range %d (%s, %d bytes) at %#x, traced at %#x", run.Case, i, r.what, r.size, want, r.addr)
			}
			if places[c]%chunkUnit != 0 {
				t.Errorf("%s: range %d: a chunk at %#x", run.Case, i, places[c])
			}
			ours[r.addr] = got
			if r.what == "segment" {
				segments++
			} else {
				outside++
			}
		}
	}
	if segments != 490 || outside != 441 {
		t.Errorf("%d segments and %d other ranges; the package says 490 and 441", segments, outside)
	}
}

// A process that has run a kernel begins with the rests of two chunks: what goes
// into them in the traced runs goes there on a started device.
func TestStarted(t *testing.T) {
	runs, compared := 0, 0
	for _, run := range tracedRuns(t) {
		if run.Case == "plain" {
			continue // it ran no kernel
		}
		runs++
		// One chunk begins with 70 MiB of the context, the other with 504 MiB for
		// the threads' stacks.
		var older, newer uint64 // their ends
		begun := 0
		for i, r := range run.Ranges {
			switch {
			case r.what == "outside" && r.size == 70<<20:
				older = r.addr + contextChunk
			case r.what == "outside" && r.size == 504<<20:
				newer = r.addr + newStacks
			case r.what == "segment" && begun == 0:
				begun = i
			}
		}
		if older-newer != contextChunk+stacksChunk {
			t.Fatalf("%s: the chunks end at %#x and %#x", run.Case, older, newer)
		}
		shift := uint64(segmentsTop) - older
		rest := func(addr uint64) bool {
			return addr >= older-contextLeft && addr < older || addr >= newer-newLeft && addr < newer
		}
		a := newAddressSpace()
		a.started = true
		for i, r := range run.Ranges[begun:] {
			if r.what == "free" {
				t.Fatalf("%s: range %d is freed", run.Case, begun+i)
			}
			got, _ := a.take(r.size)
			got -= shift
			if rest(got) || rest(r.addr) {
				compared++
				if got != r.addr {
					t.Errorf("%s: range %d of %d bytes at %#x, traced at %#x", run.Case, begun+i, r.size, got, r.addr)
				}
			}
		}
	}
	if runs != 13 || compared < 39 {
		t.Errorf("%d runs, %d ranges compared", runs, compared)
	}
}

func TestTake(t *testing.T) {
	const mib = 1 << 20
	d := New(Config{Started: true})
	for _, bad := range []ExternalRange{{}, {Host: true}, {Bytes: 1 << 60}, {Bytes: 1<<64 - 1}, {Bytes: 1 << 60, Host: true}, {Bytes: 1<<64 - 1, Host: true}} {
		if err := d.TakeExternal(bad); !errors.Is(err, ErrMisuse) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	plain := New(Config{Started: true})
	if err := d.TakeExternal(ExternalRange{Bytes: 5*mib + 1}); err != nil {
		t.Fatal(err)
	}
	// 6 MiB are the whole rest of the newest chunk, so the next goes to the other.
	a, err := d.Malloc(2*mib, 0)
	if err != nil || a != segmentsTop-contextLeft {
		t.Errorf("the next segment is at %#x, %v", a, err)
	}
	b, err := plain.Malloc(2*mib, 0)
	if err != nil || b >= a {
		t.Errorf("without: at %#x, %v", b, err)
	}
	if d.Held() != 2*mib {
		t.Errorf("%d bytes are held", d.Held())
	}
	if err := d.Free(b, 2*mib); !errors.Is(err, ErrMisuse) {
		t.Error("what others have taken cannot be freed:", err)
	}
}

// A library is mapped at the upper end of the highest hole where it fits, which
// may be exact; chunks then go below it.
func TestTakeHost(t *testing.T) {
	const mib = 1 << 20
	hole := uint64(segmentsTop - contextChunk) // its end
	for _, tt := range []struct {
		mapped, want uint64
	}{
		{0, hole - 64*mib},
		{1, hole - 96*mib},
		{64 * mib, hole - 128*mib},
		{stacksChunk - 64*mib, hole - stacksChunk - newStacks - 64*mib}, // a chunk wants more than its size
		{stacksChunk, hole - stacksChunk - newStacks - 64*mib},
		{stacksChunk + 1, hole - 64*mib}, // it fits below only
	} {
		d := New(Config{Started: true})
		if tt.mapped > 0 {
			if err := d.TakeExternal(ExternalRange{Bytes: tt.mapped, Host: true}); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := d.Malloc(40*mib, 0); err != nil || got != tt.want {
			t.Errorf("a library of %d bytes: a chunk at %#x, want %#x; %v", tt.mapped, got, tt.want, err)
		}
	}
}
