package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/ashlar-mem/ashlar/browsertests/page"
)

// patience is how long a measurement may take before it counts as failed.
const patience = 60 * time.Second

func main() {
	ashlar := flag.String("ashlar", "../bin/ashlar", "the program")
	source := flag.String("source", "../testdata/snapshots/serve_generate-default.pickle.gz", "snapshot that the files are made from")
	deep := flag.Bool("deep", false, "20,000 different stacks of 40 frames in place of the recorded ones")
	only := flag.Bool("interactive", false, "measure pages that need no server, and nothing else")
	viz := flag.String("memory-viz", "", "folder with PyTorch's MemoryViz.js and node_modules/d3: compare with it, and nothing else")
	flag.Parse()
	if err := run(*ashlar, *source, *viz, *deep, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench-view:", err)
		os.Exit(1)
	}
}

func run(ashlar, source, viz string, deep, only bool) error {
	dir, err := os.MkdirTemp("", "ashlar-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	million := filepath.Join(dir, "million.pickle")
	var stacks []string
	if deep {
		stacks = []string{"--stack-depth", "40", "--distinct-stacks", "20000"}
	}
	if err := generate(ashlar, source, million, "1000000", "0", stacks...); err != nil {
		return err
	}
	if viz != "" {
		return beside(ashlar, viz, source, million)
	}
	var ranks []string
	for i := range 8 {
		name := filepath.Join(dir, fmt.Sprintf("rank%d.pickle", i))
		if err := generate(ashlar, source, name, "100000", fmt.Sprint(i)); err != nil {
			return err
		}
		ranks = append(ranks, name)
	}
	b, err := page.LaunchWarm(context.Background())
	if err != nil {
		return err
	}
	defer b.Close()
	fmt.Println("| what | measured | bar |\n|---|---:|---:|")
	if only {
		return interactive(ashlar, b, dir, source, million)
	}
	if err := shown(ashlar, b, []string{million}, func(s *page.Server, p *page.Page) error { return one(b, s, p) }); err != nil {
		return err
	}
	if err := answers(ashlar, b, source); err != nil {
		return err
	}
	if err := shown(ashlar, b, ranks, many); err != nil {
		return err
	}
	return interactive(ashlar, b, dir, source, million)
}

func generate(ashlar, source, out, events, seed string, more ...string) error {
	args := append([]string{"gen", source, out, "--events", events, "--seed", seed}, more...)
	said, err := exec.Command(ashlar, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ashlar gen: %w\n%s", err, said)
	}
	return nil
}

func row(what, measured, bar string) { fmt.Printf("| %s | %s | %s |\n", what, measured, bar) }

const (
	numbers = `document.querySelector('[data-field="memory.reserved.peak_bytes"]') && document.querySelector('.curve canvas')`
	verdict = `document.querySelector('[data-field=cause]')`
	drawn   = `document.querySelector('.plot')?.dataset.drawn > 0`
)

// shown serves files, opens their page and measures when the numbers of the
// first are there.
func shown(ashlar string, b *page.Browser, files []string, measure func(s *page.Server, p *page.Page) error) error {
	s, err := page.Serve(ashlar, files...)
	if err != nil {
		return err
	}
	defer s.Close()
	p, err := b.Open(s.Address+"#/1/overview", 1600, 900, false)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.Until(numbers, patience); err != nil {
		return err
	}
	return measure(s, p)
}

// one measures a file of a million events.
func one(b *page.Browser, s *page.Server, p *page.Page) error {
	row("numbers and curve, from the command on", seconds(time.Since(s.Started)), "1.5 s")
	if err := p.Until(verdict, patience); err != nil {
		return err
	}
	row("verdict, from the command on", seconds(time.Since(s.Started)), "")
	began := time.Now()
	if err := p.Press("2"); err != nil {
		return err
	}
	if err := p.Until(drawn, patience); err != nil {
		return err
	}
	row("timeline drawn, from its tab on", seconds(time.Since(began)), "1 s")
	took, err := interact(p)
	if err != nil {
		return err
	}
	row(fmt.Sprintf("zoom or pan answered, median of %d", len(took)), millis(took[len(took)/2]), "")
	row("zoom or pan answered, 95th percentile", millis(took[len(took)*95/100]), "100 ms")
	ranges, err := selectRanges(p)
	if err != nil {
		return err
	}
	row(fmt.Sprintf("range selected: what it holds, median of %d", len(ranges)), millis(ranges[len(ranges)/2]), "")
	row("range selected: what it holds, slowest", millis(ranges[len(ranges)-1]), "150 ms")
	moved, err := scrub(p)
	if err != nil {
		return err
	}
	row("segments at another moment, median", millis(moved[len(moved)/2]), "150 ms")
	row("segments at another moment, slowest", millis(moved[len(moved)-1]), "150 ms")
	if err := tour(p); err != nil {
		return err
	}
	pss, err := renderer(b.PID())
	if err != nil {
		return err
	}
	row("memory of the page (renderer, PSS)", megabytes(pss), "300 MB")
	rss, high, err := resident(s.PID())
	if err != nil {
		return err
	}
	row("memory of the server (RSS)", megabytes(rss), "700 MB")
	row("memory of the server at most (RSS)", megabytes(high), "")
	return nil
}

// interact zooms and pans as a person does, one movement after the other, and
// returns how long each took, sorted.
func interact(p *page.Page) ([]float64, error) {
	box, err := p.Box(".plot")
	if err != nil {
		return nil, err
	}
	x, y := box[0]+box[2]*0.55, box[1]+box[3]*0.5
	var took []float64
	wheel := func(by float64) func() error { return func() error { return p.Wheel(x, y, by) } }
	key := func(k string) func() error { return func() error { return p.Press(k) } }
	pan := func() error { return p.Drag(x, y, x-300, y, true) }
	var steps []func() error
	for range 3 {
		for range 8 {
			steps = append(steps, wheel(-240))
		}
		steps = append(steps, key(page.Left), key(page.Right), pan, pan, key(page.Left))
		for range 5 {
			steps = append(steps, wheel(300))
		}
		steps = append(steps, key("0"))
	}
	for _, step := range steps {
		if err := p.Value("performance.clearMeasures('timeline')", nil); err != nil {
			return nil, err
		}
		if err := step(); err != nil {
			return nil, err
		}
		// Its own answer: nothing is asked for any more.
		if err := p.Until("performance.getEntriesByName('timeline').length > 0 && !document.querySelector('.caption .spin')", patience); err != nil {
			return nil, err
		}
		var ms []float64
		if err := p.Value("performance.getEntriesByName('timeline').map((e) => e.duration)", &ms); err != nil {
			return nil, err
		}
		took = append(took, ms...)
	}
	slices.Sort(took)
	return took, nil
}

// selectRanges drags over parts of the timeline, and over nearly all of it, and
// returns how long the panel took from the pointer's release on, sorted.
func selectRanges(p *page.Page) ([]float64, error) {
	box, err := p.Box(".plot")
	if err != nil {
		return nil, err
	}
	var took []float64
	for i := range 10 {
		if err := p.Value(`(() => {
			performance.clearMeasures('range');
			const answered = () => { const e = document.querySelector('[data-panel=range]:has(dl.facts)'); return e ? e.dataset.after + '..' + e.dataset.until : ''; };
			addEventListener('pointerup', () => {
				const start = performance.now(), old = answered();
				const look = () => ['', old].includes(answered()) ? requestAnimationFrame(look) : performance.measure('range', {start});
				look();
			}, {once: true, capture: true});
		})()`, nil); err != nil {
			return nil, err
		}
		left, width := box[0]+box[2]*(0.1+0.02*float64(i)), box[2]*(0.05+0.07*float64(i))
		if err := p.Drag(left, box[1]+100, left+width, box[1]+120, false); err != nil {
			return nil, err
		}
		if err := p.Until("performance.getEntriesByName('range').length > 0", patience); err != nil {
			return nil, err
		}
		var ms []float64
		if err := p.Value("performance.getEntriesByName('range').map((e) => e.duration)", &ms); err != nil {
			return nil, err
		}
		took = append(took, ms[0])
	}
	slices.Sort(took)
	return took, nil
}

// scrub goes to moments all over the run on the screen of segments.
func scrub(p *page.Page) ([]float64, error) {
	if err := p.Go("#/1/segments?event=0"); err != nil {
		return nil, err
	}
	at := func(event int) string {
		return fmt.Sprintf("document.querySelector('[data-field=segments-event]')?.dataset.event === '%d'", event)
	}
	if err := p.Until(at(0), patience); err != nil {
		return nil, err
	}
	var took []float64
	for i := range 20 {
		event := (i*379_721 + 77_777) % 1_000_000
		var ms float64
		err := p.Value(fmt.Sprintf(`new Promise((done) => {
			const began = performance.now(), e = document.querySelector('input[name=moment]');
			e.value = %d;
			e.dispatchEvent(new Event('input', {bubbles: true}));
			const look = () => (%s) ? requestAnimationFrame(() => done(performance.now() - began)) : requestAnimationFrame(look);
			look();
		})`, event, at(event)), &ms)
		if err != nil {
			return nil, err
		}
		took = append(took, ms)
	}
	slices.Sort(took)
	return took, nil
}

// tour opens the other screens, so that the page has held all of them.
func tour(p *page.Page) error {
	for _, s := range []struct{ hash, ready string }{
		{"#/1/stacks", "document.querySelector('.icicle')?.dataset.nodes > 0"},
		{"#/1/events?event=500000", "document.querySelector('.list .row.on')"},
		{"#/1/timeline", drawn},
	} {
		if err := p.Go(s.hash); err != nil {
			return err
		}
		if err := p.Until(s.ready, patience); err != nil {
			return err
		}
	}
	return nil
}

// many opens eight files together.
func many(s *page.Server, p *page.Page) error {
	row("eight files of 100,000 events: numbers and curve of the first", seconds(time.Since(s.Started)), "")
	if err := p.Until("fetch('api/runs').then((r) => r.json()).then((d) => d.runs.every((r) => r.state === 'ready'))", patience); err != nil {
		return err
	}
	row("all eight read", seconds(time.Since(s.Started)), "")
	for id := range 8 {
		if err := p.Go(fmt.Sprintf("#/%d/timeline", id+1)); err != nil {
			return err
		}
		if err := p.Until(drawn, patience); err != nil {
			return err
		}
		if err := p.Go(fmt.Sprintf("#/%d/overview", id+1)); err != nil {
			return err
		}
		if err := p.Until(verdict, patience); err != nil {
			return err
		}
	}
	row("timeline and verdict of all eight looked at", seconds(time.Since(s.Started)), "")
	rss, _, err := resident(s.PID())
	if err != nil {
		return err
	}
	row("memory of the server with eight files (RSS)", megabytes(rss), "")
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func millis(ms float64) string { return fmt.Sprintf("%.0f ms", ms) }

func megabytes(n int64) string { return fmt.Sprintf("%d MB", n/1_000_000) }
