package findings

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/scenario"
)

// serve answers requests: a prompt, then tokens one by one, each with a cache
// that grows and a copy of which replaces the one before.
func serve(requests int, tokens func(request int) int) func(*scenario.Scenario) {
	return func(s *scenario.Scenario) {
		s.Call(main, func() {
			s.Alloc("weights", 200*mib, 0, move, "serve.py:3 load")
			for r := range requests {
				s.Step(r)
				s.Alloc("prompt", 4096, 0, "serve.py:10 serve")
				layers := func(line string, width, cache uint64) {
					for l := range 3 {
						s.Alloc("h", width, 0, "layers.py:5 linear", call, "model.py:9 forward", call, line)
						name := fmt.Sprint("cache", l)
						s.Alloc("new", cache, 0, "cache.py:4 update", call, "model.py:9 forward", call, line)
						if s.Has(name) {
							s.Free(name)
						}
						s.Alloc(name, cache, 0, "cache.py:5 update", call, "model.py:9 forward", call, line)
						s.Free("new", "h")
					}
				}
				layers("serve.py:11 serve", 12*mib, 8*mib)
				for token := range tokens(r) {
					s.Alloc("next", 512, 0, "serve.py:13 serve")
					layers("serve.py:14 serve", mib/2, 8*mib+uint64(token+1)*mib/4)
					s.Free("next")
				}
				s.Free("cache0", "cache1", "cache2", "prompt")
			}
		})
	}
}

// Loops that are not those of a training program.
func TestShapes(t *testing.T) {
	for _, tt := range []struct {
		name  string
		run   func(*scenario.Scenario)
		steps int
	}{
		{"requests", serve(9, func(r int) int { return 4 + r*5%7 }), 9},
		{"requests of equal length", serve(6, func(int) int { return 5 }), 6},
		{"requests of one token", serve(12, func(int) int { return 1 }), 12},
		{
			"one pass through a model", func(s *scenario.Scenario) {
				s.Alloc("weights", 100*mib, 0, move, main)
				for i := range 24 { // the layers are no steps, and their results no leak
					s.Alloc("t", 4*mib, 0, "layers.py:9 mix", call, "model.py:30 forward", call, main)
					s.Alloc(fmt.Sprint("a", i), 8*mib, 0, "layers.py:12 linear", call, "model.py:30 forward", call, main)
					s.Free("t")
				}
			}, 0,
		},
		{
			"everything once", func(s *scenario.Scenario) {
				for i := range 30 {
					s.Alloc(fmt.Sprint(i), uint64(i+1)*mib, 0, fmt.Sprintf("script.py:%d <module>", i+1))
				}
			}, 0,
		},
		{"nothing", func(*scenario.Scenario) {}, 0},
		{
			"parameters only", func(s *scenario.Scenario) {
				for i := range 50 {
					s.Alloc(fmt.Sprint(i), 2*mib, 0, move, "train.py:3 build", main)
				}
				s.Alloc("x", mib, 0, "train.py:9 train", main)
				s.Alloc("y", mib, 0, "train.py:10 train", main)
			}, 0,
		},
		{
			"a loop after the training", func(s *scenario.Scenario) {
				healthy().run(s)
				for i := range 60 {
					s.Alloc(fmt.Sprint("kept", i), mib, 0, "export.py:4 <listcomp>", main)
				}
			}, 10,
		},
		{
			"another pass after the training", func(s *scenario.Scenario) {
				healthy().run(s)
				for range 3 {
					flash(s, 6, 9*mib, "layers.py:12 linear", call, "export.py:9 run", main)
				}
			}, 10,
		},
		{
			"an evaluation of many batches every second step", with(healthy(), func(p *program) {
				p.steps, p.width = 8, varied(12*mib)
				p.after = func(s *scenario.Scenario, step int) {
					for b := 0; b < 6 && step%2 == 1; b++ {
						s.Alloc("batch", mib/2, 0, "eval.py:5 evaluate", "train.py:50 train")
						flash(s, 2, mib, "layers.py:12 linear", call, "eval.py:6 evaluate", "train.py:50 train")
						s.Free("batch")
					}
				}
			}).run, 8,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := analyse(t, scenario.Config{}, tt.run)
			if got := a.Steps.Complete(); got != tt.steps {
				t.Errorf("%d complete steps, want %d: %s", got, tt.steps, a.Steps.Detail)
			}
			f := a.Find()
			noLeaks(t, a, f.Leaks)
			if tt.name != "an evaluation of many batches every second step" {
				noSpikes(t, a, f.Spikes)
			}
			a.Holders(a.Trace.Events.Len() - 1)
		})
	}
}

// behaviour is something that a program of random shape does, with its truth.
// put is false if the program is too short for it.
type behaviour struct {
	name string
	put  func(p *program, r *rand.Rand, want *truth) bool
}

var behaviours = []behaviour{
	{"healthy", func(*program, *rand.Rand, *truth) bool { return true }},
	{"a leak", func(p *program, r *rand.Rand, want *truth) bool {
		bytes := uint64(2+r.IntN(6)) * mib
		want.leak = &kept{"log.py:3 append", bytes, bytes * uint64(p.steps), every(p.steps), Certain}
		if p.steps <= LeakSteps+1 {
			want.leak.sure = Likely
		}
		p.after = func(s *scenario.Scenario, step int) {
			keep(s, "output", step, bytes, "log.py:3 append", "train.py:30 train")
		}
		return true
	}},
	{"a window", func(p *program, r *rand.Rand, _ *truth) bool {
		window, bytes := 1+r.IntN(p.steps), uint64(1+r.IntN(8))*mib
		p.after = func(s *scenario.Scenario, step int) {
			keep(s, "result", step, bytes, "log.py:5 push", "train.py:30 train")
			if step >= window {
				s.Free(fmt.Sprintf("result of step %d", step-window))
			}
		}
		return window < p.steps-1
	}},
	{"a cache", func(p *program, r *rand.Rand, _ *truth) bool {
		full, bytes := min(1+r.IntN(p.steps), p.steps*2/3), uint64(1+r.IntN(8))*mib
		p.forward = func(s *scenario.Scenario, step int) {
			if step <= full && !s.Has(fmt.Sprintf("entry of step %d", step)) {
				keep(s, "entry", step, bytes, "cache.py:7 fetch", call, "train.py:21 train")
			}
		}
		return p.steps-2 > full
	}},
	{"an epoch", func(p *program, r *rand.Rand, _ *truth) bool {
		every, bytes := 2+r.IntN(4), uint64(1+r.IntN(20))*mib
		p.after = func(s *scenario.Scenario, step int) {
			keep(s, "result", step, bytes, "log.py:5 push", "train.py:30 train")
			for i := 0; i < every && step%every == every-1; i++ {
				s.Free(fmt.Sprintf("result of step %d", step-i))
			}
		}
		return true
	}},
	{"a checkpoint", func(p *program, r *rand.Rand, want *truth) bool {
		every, size := 2+r.IntN(4), uint64(11+r.IntN(8))
		off := r.IntN(every)
		p.after = func(s *scenario.Scenario, step int) {
			if step%every == off {
				flash(s, 1+p.layers, size*mib, "save.py:4 <listcomp>", "train.py:41 train")
			}
		}
		want.spike = &rise{parts: []string{"save.py:4 <listcomp>"}, every: every, mib: uint64(1+p.layers) * size}
		for i := off; i < p.steps; i += every {
			want.spike.in = append(want.spike.in, i)
		}
		return p.steps >= 2*every+2
	}},
	{"an evaluation", func(p *program, r *rand.Rand, want *truth) bool {
		every, size, batches := 2+r.IntN(4), uint64(13+r.IntN(8)), 1+r.IntN(12)
		off := r.IntN(every)
		p.after = func(s *scenario.Scenario, step int) {
			for b := 0; b < batches && step%every == off; b++ {
				s.Alloc("batch", mib/2, 0, "eval.py:5 evaluate", "train.py:50 train")
				flash(s, 1+p.layers, size*mib, "layers.py:12 linear", call, "eval.py:6 evaluate", "train.py:50 train")
				s.Free("batch")
			}
		}
		want.spike = &rise{parts: []string{"layers.py:12 linear", "eval.py:5 evaluate"}, every: every, mib: uint64(1+p.layers) * size}
		for i := off; i < p.steps; i += every {
			want.spike.in = append(want.spike.in, i)
		}
		return p.steps >= 2*every+2
	}},
}

// Programs of random shape: what they do is found, and nothing else.
func TestRandomPrograms(t *testing.T) {
	for seed := range uint64(40) {
		for _, b := range behaviours {
			r := rand.New(rand.NewPCG(seed, 7))
			sizes := make([]uint64, 400)
			for i := range sizes {
				sizes[i] = uint64(1+r.IntN(40)) * mib / 4
			}
			p := program{
				steps: 5 + r.IntN(20), layers: 1 + r.IntN(6), weight: uint64(1+r.IntN(20)) * mib, logits: uint64(r.IntN(2)*r.IntN(60)) * mib,
				width: func(i int) uint64 { return sizes[i%len(sizes)] }, copies: r.IntN(2) == 0, micro: 1 + r.IntN(3),
				optimizer: r.IntN(2) == 0,
			}
			c := scenario.Config{Steps: scenario.Marks(r.IntN(3))}
			want := truth{steps: p.steps}
			if !b.put(&p, r, &want) {
				continue
			}
			name := fmt.Sprintf("%s, seed %d: %d steps, %d layers, %d batches, marks %d, optimizer %v",
				b.name, seed, p.steps, p.layers, p.micro, c.Steps, p.optimizer)
			t.Run(name, func(t *testing.T) {
				a := analyse(t, c, p.run)
				want.check(t, a, a.Find())
			})
		}
	}
}
