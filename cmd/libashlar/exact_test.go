package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// exact is a random program of large requests, performed by the library and by
// an engine without a front: nothing at all may differ.
type exact struct {
	*script
	rng    *rand.Rand
	engine *alloc.Allocator

	live  []slot
	freed []slot // lately, the latest last
	slots int
	ooms  int
	wrong int // addresses that differ
}

func (x *exact) step() {
	switch dice := x.rng.IntN(1000); {
	case dice < 500 || len(x.live) == 0:
		x.malloc()
	case dice < 900:
		x.free(len(x.live) - 1)
	case dice < 985:
		x.free(x.rng.IntN(len(x.live)))
	case dice < 990: // a function returns
		for n := x.rng.IntN(40); n > 0 && len(x.live) > 0; n-- {
			x.free(len(x.live) - 1)
		}
	case dice < 993: // a loop that makes and drops the same tensors
		sizes := []slot{x.pick(), x.pick(), x.pick()}
		for range 5 {
			n := len(x.live)
			for _, s := range sizes {
				x.request(s)
			}
			for len(x.live) > n {
				x.free(len(x.live) - 1)
			}
		}
	case dice < 996:
		s := x.live[x.rng.IntN(len(x.live))]
		stream := uint64(x.rng.IntN(3))
		x.expect("ok", "record %d %d", s.n, stream)
		x.must(x.engine.RecordStream(s.addr, stream))
	case dice == 996:
		x.expect("ok", "empty")
		x.must(x.engine.EmptyCache())
	case dice == 997:
		x.compare()
	}
}

func (x *exact) must(err error) {
	if err != nil {
		x.t.Fatal(err)
	}
}

// pick invents a request above the small sizes.
func (x *exact) pick() slot {
	size := 1<<20 + 1 + x.rng.Uint64N(40<<20)
	if x.rng.IntN(3) > 0 {
		size = []uint64{1<<20 + 1, 3 << 20, 3 << 20, 9 << 20, 12 << 20, 25<<20 + 7, 60 << 20}[x.rng.IntN(7)]
	}
	return slot{size: size, stream: uint64(x.rng.IntN(8) / 6)}
}

// malloc asks for what was freed last, for the like of it, or for something
// else.
func (x *exact) malloc() {
	s := x.pick()
	if n := len(x.freed); n > 0 && x.rng.IntN(10) < 7 {
		back := 1
		if x.rng.IntN(10) == 0 {
			back = 1 + x.rng.IntN(n)
		}
		s = x.freed[n-back]
		x.freed = x.freed[:n-back]
	}
	x.request(s)
}

func (x *exact) request(s slot) {
	s.n = x.slots
	x.slots++
	var err error
	s.addr, err = x.engine.Malloc(s.size, s.stream)
	var oom *alloc.OutOfMemoryError
	if err != nil && !errors.As(err, &oom) {
		x.t.Fatal(err)
	}
	want := strconv.FormatUint(s.addr, 10)
	if err != nil {
		want = "oom"
		x.ooms++
	} else {
		x.live = append(x.live, s)
	}
	x.say(func(got string) {
		if got, _, _ = strings.Cut(got, " "); got != want {
			if x.wrong++; x.wrong < 5 {
				x.t.Errorf("request %d, %d bytes on stream %d: %s, without a front %s", s.n, s.size, s.stream, got, want)
			}
		}
	}, "malloc %d %d %d 0", s.n, s.size, s.stream)
}

func (x *exact) free(i int) {
	s := x.live[i]
	x.live = append(x.live[:i], x.live[i+1:]...)
	x.freed = append(x.freed, s)
	if len(x.freed) > 50 {
		x.freed = x.freed[25:]
	}
	x.expect("ok", "free %d", s.n)
	x.must(x.engine.Free(s.addr))
}

func (x *exact) compare() {
	want := x.engine.Stats().Map()
	at := x.slots
	x.say(func(text string) {
		got := flatten("", decode[map[string]any](x.t, text), map[string]int64{})
		for key, v := range want {
			family, _, _ := strings.Cut(key, ".")
			switch family {
			case "inactive_split", "inactive_split_bytes":
				// The engine does not see what was undone: its peaks and sums
				// are those of another order. What is now is the same.
				if !strings.HasSuffix(key, ".current") {
					continue
				}
			}
			if got[key] != v {
				x.t.Errorf("after %d requests: %s = %d, without a front %d", at, key, got[key], v)
			}
		}
	}, "stats 0")
}

func newExact(t *testing.T, conf string, seed, memory uint64) *exact {
	cfg := defaults()
	if err := cfg.read(conf, false); err != nil {
		t.Fatal(err)
	}
	return &exact{
		script: &script{t: t}, rng: rand.New(rand.NewPCG(seed, 9)),
		engine: alloc.New(sim.New(sim.Config{TotalMemory: memory, Started: true}), alloc.WithSettings(cfg.engine)),
	}
}

// finish compares, runs the program and wants that many hits at least.
func (x *exact) finish(hits uint64, env ...string) {
	x.compare()
	x.say(func(text string) {
		f := decode[frontState](x.t, text)
		x.t.Logf("%d hits, %d misses, %d out of memory, %d addresses differ", f.Hits, f.Misses, x.ooms, x.wrong)
		if f.Hits < hits {
			x.t.Errorf("%d hits of %d requests", f.Hits, x.slots)
		}
	}, "front 0")
	if said := x.run(env...); said != "" {
		x.t.Errorf("standard error: %s", said)
	}
}

// TestLargeIsExact: for large blocks a front changes nothing, neither where
// they lie nor what is reserved, retried or refused.
func TestLargeIsExact(t *testing.T) {
	short.Skip(t)
	for _, conf := range []string{
		"expandable_segments:True",
		"expandable_segments:True,roundup_power2_divisions:4",
		"expandable_segments:False",
		"expandable_segments:False,max_split_size_mb:32",
		"expandable_segments:True,max_split_size_mb:32",
	} {
		for seed := range uint64(8) {
			t.Run(fmt.Sprintf("%s/%d", conf, seed), func(t *testing.T) {
				t.Parallel()
				x := newExact(t, conf, seed, 4<<30)
				for i := range 8000 {
					if i == 3000 && seed%2 == 1 { // from here on it is tight
						x.expect("ok", "fraction 180000 0")
						x.must(x.engine.SetMemoryFraction(0.18))
					}
					x.step()
				}
				x.finish(400, confVariable+"="+conf, memoryVariable+"=4GiB")
				if seed%2 == 1 && x.ooms == 0 {
					t.Error("the limit was never reached")
				}
			})
		}
	}
}

// TestDeepStack has more blocks freed in reverse order than can be undone.
func TestDeepStack(t *testing.T) {
	t.Parallel()
	x := newExact(t, "", 1, 64<<30)
	fill := func(n int) {
		for len(x.live) < n {
			x.request(slot{size: 1<<20 + 1 + uint64(len(x.live)%7)<<20})
		}
	}
	drop := func(n int) {
		for len(x.live) > n {
			x.free(len(x.live) - 1)
		}
	}
	for range 3 {
		fill(6000) // the first time they grow and cannot be undone
		drop(3000)
		fill(6000)
		drop(4000)
		x.free(2000) // not in order, while many are undone
		fill(6000)
		drop(0)
	}
	x.finish(6000, memoryVariable+"=64GiB")
}
