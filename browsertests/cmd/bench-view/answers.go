package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/ashlar-mem/ashlar/browsertests/page"
)

const (
	fiveSettings = "#/1/whatif?sets=expandable_segments:True;max_split_size_mb:128;max_split_size_mb:512;roundup_power2_divisions:4;garbage_collection_threshold:0.8"
	curves       = `document.querySelector('.curve.lines')?.dataset.lines === '6'`
	limits       = `document.querySelectorAll('[data-panel=outcomes] [data-field=need_bytes]').length === 6`
	comparison   = `document.querySelector('[data-panel=stacks] [data-change]') && document.querySelector('.curve.lines')`
	ranking      = `document.querySelector('[data-panel=divergence]') && document.querySelector('[data-panel=flame] .icicle')`
)

// until waits for a condition, and for the next two frames, in which what is
// there is drawn. It returns how long that took.
func until(p *page.Page, began time.Time, condition string) (time.Duration, error) {
	if err := p.Until(condition, patience); err != nil {
		return 0, err
	}
	err := p.Value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))", nil)
	return time.Since(began), err
}

// answers measures what-if and compare with a recording of 407,899 events, and
// with its like under a limit.
func answers(ashlar string, b *page.Browser, source string) error {
	other := filepath.Join(filepath.Dir(source), "serve_generate-tight-default.pickle.gz")
	began := time.Time{}
	steps := []struct {
		fresh       bool // a server that was not asked yet
		hash, ready string
		what, bar   string
	}{
		{true, fiveSettings, curves, "what-if of 407,899 events, five settings: curves, from the command on", ""},
		{true, "#/1/overview", verdict, "", ""},
		{false, fiveSettings, curves, "the same, from the question on", "3 s"},
		{false, "", limits, "its smallest limits, from the question on", ""},
		{false, "#/1/compare", comparison, "runs of 407,899 and 373,685 events compared", ""},
		{false, "", ranking, "the same with the calls of both, and the graph", ""},
	}
	var s *page.Server
	var p *page.Page
	end := func() error {
		if s == nil {
			return nil
		}
		p.Close()
		return s.Close()
	}
	for _, step := range steps {
		var err error
		switch {
		case step.fresh:
			if err = end(); err != nil {
				return err
			}
			if s, err = page.Serve(ashlar, source, other); err != nil {
				return err
			}
			began = s.Started
			p, err = b.Open(s.Address+step.hash, 1600, 900, false)
		case step.hash != "":
			began = time.Now()
			err = p.Go(step.hash)
		}
		if err != nil {
			return err
		}
		took, err := until(p, began, step.ready)
		if err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		if step.what != "" {
			row(step.what, seconds(took), step.bar)
		}
	}
	return end()
}
