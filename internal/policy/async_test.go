package policy

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"
)

// probed is a line of testdata/async/probe.jsonl.gz: what an H200's pool reserved.
type probed struct {
	Test     string
	Seed     int
	N        uint64     // bytes of a block
	K, MiB   uint64     // blocks, and their size
	Reserved []uint64   `json:"r"`
	Trace    [][3]int64 // block, negative if it is freed, 0 for a synchronisation; bytes; reserved
}

func probe(t *testing.T) []probed {
	t.Helper()
	f, err := os.Open("../../testdata/async/probe.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var all []probed
	for d := json.NewDecoder(z); ; {
		var p probed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// The pool reserves what an H200's does: always where blocks of one size are made,
// or every second one is freed and one as large as all that is free is asked for.
func TestAsyncIsTheDevices(t *testing.T) {
	seen := 0
	for _, p := range probe(t) {
		m := newModel(t, "async:max", Options{})
		var got []uint64
		note := func() { got = append(got, m.a.Stats().Reserved) }
		switch p.Test {
		case "size":
			note()
			b := m.mustMalloc(p.N)
			note()
			m.mustMalloc(p.N)
			note()
			m.free(b)
			m.mustMalloc(p.N)
			note()
		case "holes":
			var all []Block
			for range p.K {
				all = append(all, m.mustMalloc(p.MiB<<20))
			}
			note()
			for i := 0; i < len(all); i += 2 {
				m.free(all[i])
			}
			note()
			m.mustMalloc(p.MiB << 20 * p.K / 2)
			note()
		default:
			continue
		}
		seen++
		for i, want := range p.Reserved {
			if got[i] != want {
				t.Errorf("%s of %d bytes, %d of %d MiB: reserved %d, the device %d", p.Test, p.N, p.K, p.MiB, got, p.Reserved)
				break
			}
		}
		m.compare()
	}
	if seen != 46 {
		t.Errorf("%d tests", seen)
	}
}

// Random programs: the rules follow the device for a while, and then keep near it.
func TestAsyncFollowsTheDevice(t *testing.T) {
	calls, followed, peaks := 0, 0, 0
	for _, p := range probe(t) {
		if p.Test != "random" {
			continue
		}
		m := newModel(t, "async:max", Options{})
		live := map[int64]Block{}
		var most uint64
		for _, c := range p.Trace {
			switch id := c[0]; {
			case id > 0:
				b, err := m.a.Malloc(uint64(c[1]), Place{})
				if err != nil {
					t.Fatal(err)
				}
				live[id] = b
			case id < 0:
				if err := m.a.Free(live[-id]); err != nil {
					t.Fatal(err)
				}
			default:
				if err := m.a.Synchronize(); err != nil {
					t.Fatal(err)
				}
			}
			calls++
			if m.a.Stats().Reserved == uint64(c[2]) {
				followed++
			}
			most = max(most, uint64(c[2]))
		}
		if err := m.a.Check(); err != nil {
			t.Fatal(err)
		}
		off := float64(m.a.Stats().Peak.Reserved)/float64(most) - 1
		if off < -0.12 || off > 0.05 {
			t.Errorf("program %d: the peak is %.1f %% off", p.Seed, 100*off)
		}
		if off > -0.05 {
			peaks++
		}
	}
	if calls != 19640 || followed < calls/2 || peaks < 7 {
		t.Errorf("%d of %d calls are followed, %d of 8 peaks are within 5 %%", followed, calls, peaks)
	}
	t.Logf("%d of %d calls are followed, %d of 8 peaks are within 5 %%", followed, calls, peaks)
}
