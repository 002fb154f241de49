package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ashlar-mem/ashlar/browsertests/page"
)

// A shot is a screen in a state worth looking at.
type shot struct {
	name, hash string
	ready      string // when it is all there
	keys       string // pressed before
	file       string // shown instead of the others
}

const idle = "!document.querySelector('main .spin')"

const answered = "document.querySelector('[data-panel=outcomes] tbody tr') && !document.querySelector('[data-ask=stop]')"

var shots = []shot{
	{"overview", "#/1/overview", "document.querySelector('[data-panel=verdict] [data-field=cause]') && document.querySelector('.curve canvas')", "", ""},
	{"runs", "#//overview", "document.querySelector('.run-table') && " + idle, "", ""},
	{"timeline", "#/1/timeline", "document.querySelector('.plot')?.dataset.drawn > 0", "", ""},
	{"timeline-zoomed", "#/1/timeline?from=FROM&to=TO&color=category&event=OOM", "document.querySelector('.plot')?.dataset.drawn > 0", "", ""},
	{"timeline-block", "#/1/timeline?event=OOM&alloc=4000", "document.querySelector('.plot')?.dataset.drawn > 0 && document.querySelector('[data-panel=block] .facts')", "", ""},
	{"timeline-range", "#/1/timeline?color=category&range=9000..12000", "document.querySelector('.plot')?.dataset.drawn > 0 && document.querySelector('[data-panel=range] .alive')", "", ""},
	{"timeline-only", "#/1/timeline?color=category&stack=cross_entropy&only=1", "document.querySelector('.plot')?.dataset.drawn > 0 && document.querySelector('[data-panel=matches]')", "", ""},
	{"timeline-moving", "#/1/timeline?color=category&moving=1&from=FROM&to=TO&event=OOM", "document.querySelector('.plot')?.dataset.drawn > 0", "", ""},
	{"overview-range", "#/1/overview?range=9000..12000", "document.querySelector('[data-panel=range] .alive')", "", ""},
	{"segments-block", "#/1/segments?event=9000&alloc=4000&sort=free&bars=stretched", "document.querySelector('.map')?.dataset.rows > 0 && document.querySelector('[data-panel=block] .facts')", "", ""},
	{"segments", "#/1/segments?event=OOM", "document.querySelector('.map')?.dataset.rows > 0", "", ""},
	{"timeline-segments", "#/1/timeline?what=segments", "document.querySelector('.plot')?.dataset.drawn > 0", "", ""},
	{"stacks-segments", "#/1/stacks?what=segments", "document.querySelector('.icicle')?.dataset.nodes > 0", "", ""},
	{"stacks", "#/1/stacks?event=OOM", "document.querySelector('.icicle')?.dataset.nodes > 0", "", ""},
	{"stacks-search", "#/1/stacks?event=OOM&lib=1&q=forward", "document.querySelector('.icicle')?.dataset.nodes > 0", "", ""},
	{"stacks-up", "#/1/stacks?event=OOM&view=up", "document.querySelector('.icicle')?.dataset.nodes > 0", "", ""},
	{"stacks-sandwich", "#/1/stacks?event=OOM&view=sandwich&lib=1", "document.querySelector('.icicle')?.dataset.nodes > 0", "", ""},
	{"stacks-difference", "#/1/stacks?mode=diff&after=FROM&until=OOM", "document.querySelector('.icicle')?.dataset.nodes > 0", "", ""},
	{"events-filtered", "#/1/events?stack=forward&event=OOM", "document.querySelector('.list .row[data-event]')", "", ""},
	{"events", "#/1/events?event=OOM", "document.querySelector('.list .row.on')", "", ""},
	{"playground", "#/1/playground?lesson=every-second&step=31", played(31), "", ""},
	{"playground-lessons", "#/1/playground", "document.querySelector('.lessons')", "", ""},
	{"playground-warm-up", "#/1/playground?lesson=warm-up&step=244", played(244), "", ""},
	{"playground-streams", "#/1/playground?lesson=two-streams&step=8", played(8), "", ""},
	{"playground-expandable", "#/1/playground?lesson=expandable&step=26", played(26), "", ""},
	{"playground-share", "#/1/playground?lesson=max-split&step=15", played(15), "s", ""},
	{"keys", "#/1/timeline", "document.querySelector('.plot')?.dataset.drawn > 0", "?", ""},
	{"whatif", "#/1/whatif?sets=expandable_segments:True;max_split_size_mb:128;max_split_size_mb:512;roundup_power2_divisions:4;garbage_collection_threshold:0.8", answered, "", ""},
	{"whatif-empty", "#/1/whatif", "document.querySelector('.whatif-form')", "", ""},
	{"whatif-tune", "#/1/whatif?tune=5", answered + " && document.querySelector('[data-panel=tune]')", "", ""},
	{"whatif-segments", "#/1/segments?event=OOM&variant=roundup_power2_divisions:4", "document.querySelector('.map')?.dataset.rows > 0", "", ""},
	{"compare", "#/1/compare", "document.querySelector('.icicle')?.dataset.nodes > 0 && document.querySelector('[data-panel=ranks]') && document.querySelector('.curve.lines')", "", ""},
	{"compare-graph", "#/1/compare?width=larger&lib=1&align=event", "(document.querySelector('[data-panel=flame]')?.scrollIntoView(), document.querySelector('.icicle')?.dataset.nodes > 0)", "", ""},
	{"files", "#/1/overview", "document.querySelector('[data-panel=verdict] [data-field=cause]')", "F", ""},
	{"plan", "#/1/plan?v=1&shape=llama-3.1-8b&batch=2&seq=4096&gpu=h100", planned, "", ""},
	{"plan-empty", "#/1/plan", "document.querySelector('.plan-form')", "", ""},
	{"plan-fits", "#/1/plan?v=1&shape=qwen3-1.7b&batch=8&seq=512&generate=256&gpu=4090", planned, "", ""},
	{"plan-lever", "#/1/plan?v=1&shape=llama-3.2-1b&batch=8&seq=2048&attention=flash&gpu=a100-40", "(document.querySelector('.trail li:nth-child(2)') || document.querySelector('[data-lever^=\"--loss\"]')?.click(), document.querySelectorAll('.trail li').length === 2)", "", ""},
	{"plan-best", "#/1/plan?v=1&shape=llama-3.1-8b&batch=4&seq=4096&gpu=h200&recompute=best", planned, "", ""},
	{"plan-largest", "#/1/plan?v=1&shape=llama-3.1-8b&batch=1&seq=4096&gpu=h100&recompute=full&max=batch", planned, "", ""},
	{"plan-error", "#/1/plan?v=1&shape=llama-3.1-8b&batch=1&seq=4096&dtype=fp32&attention=flash", "document.querySelector('[data-field=plan-trouble]')", "", ""},
	{"plan-share", "#/1/plan?v=1&shape=gpt2&batch=8&seq=1024&gpu=3090", planned, "s", ""},
	{"plan-against", "#/1/plan?v=1&shape=qwen3-1.7b&batch=3&seq=1777&dtype=bf16&gpu=h200&against=1", "(document.querySelector('[data-panel=against] .curve')?.scrollIntoView({block: 'center'}), document.querySelector('[data-panel=terms]'))", "", odd},
	{"plan-against-top", "#/1/plan?v=1&shape=qwen3-1.7b&batch=3&seq=1777&dtype=bf16&gpu=h200&against=1", "document.querySelector('[data-panel=terms]')", "", odd},
}

const planned = "document.querySelector('[data-field=planned]') && !document.querySelector('[data-ask=stop]')"

// odd is a recording of a run that can be planned.
const odd = "../testdata/plan/recordings/odd.pickle.gz"

// played is when a step of the playground is shown.
func played(step int) string {
	return fmt.Sprintf("document.querySelector('[data-field=at]')?.dataset.at === '%d'", step)
}

func main() {
	ashlar := flag.String("ashlar", "../bin/ashlar", "the program")
	out := flag.String("out", "../bin/screenshots", "folder for the pictures")
	only := flag.String("only", "", "one screen only")
	sizes := flag.String("sizes", "1600x900,1280x720", "sizes of the window")
	flag.Parse()
	files := flag.Args()
	if len(files) == 0 {
		files = []string{"../testdata/snapshots/gpt2_varlen-tight-default.pickle.gz", "../testdata/snapshots/unet_multires-tight-default.pickle.gz"}
	}
	if err := run(*ashlar, *out, *only, strings.Split(*sizes, ","), files); err != nil {
		fmt.Fprintln(os.Stderr, "screenshots:", err)
		os.Exit(1)
	}
}

func run(ashlar, out, only string, sizes, files []string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	s, err := page.Serve(ashlar, files...)
	if err != nil {
		return err
	}
	defer s.Close()
	b, err := page.Launch(context.Background())
	if err != nil {
		return err
	}
	defer b.Close()
	for _, text := range sizes {
		var size [2]int64
		if _, err := fmt.Sscanf(text, "%dx%d", &size[0], &size[1]); err != nil {
			return fmt.Errorf("-sizes has %q, not WIDTHxHEIGHT such as 640x720: %w", text, err)
		}
		for _, dark := range []bool{false, true} {
			for _, shot := range shots {
				if only != "" && only != shot.name {
					continue
				}
				if err := takeOf(b, s, ashlar, shot, size, dark, out); err != nil {
					return fmt.Errorf("%s: %w", shot.name, err)
				}
			}
		}
	}
	return nil
}

// takeOf takes a picture of the files, or of the shot's own.
func takeOf(b *page.Browser, s *page.Server, ashlar string, shot shot, size [2]int64, dark bool, out string) error {
	if shot.file != "" {
		own, err := page.Serve(ashlar, shot.file)
		if err != nil {
			return err
		}
		defer own.Close()
		s = own
	}
	return take(b, s, shot, size, dark, out)
}

func take(b *page.Browser, s *page.Server, shot shot, size [2]int64, dark bool, out string) error {
	// What is behind a button in a narrow window is waited for in a wide one.
	p, err := b.Open(s.Address+"#/1/overview", max(size[0], 1280), size[1], dark)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.Until("document.querySelector('footer .where')", 20*time.Second); err != nil {
		return err
	}
	hash, err := p.Fill(shot.hash)
	if err != nil {
		return err
	}
	if err := p.Go(hash); err != nil {
		return err
	}
	if err := p.Until(shot.ready, 20*time.Second); err != nil {
		return err
	}
	if err := p.Until(idle, 20*time.Second); err != nil {
		return err
	}
	if err := p.Resize(size[0], size[1]); err != nil {
		return err
	}
	if shot.keys != "" {
		if err := p.Press(shot.keys); err != nil {
			return err
		}
	}
	time.Sleep(400 * time.Millisecond) // the last frames
	for _, text := range p.Problems() {
		fmt.Fprintln(os.Stderr, shot.name, "says", text)
	}
	png, err := p.Screenshot()
	if err != nil {
		return err
	}
	theme := "light"
	if dark {
		theme = "dark"
	}
	name := filepath.Join(out, fmt.Sprintf("%s-%s-%dx%d.png", shot.name, theme, size[0], size[1]))
	fmt.Println(name)
	return os.WriteFile(name, png, 0o644)
}
