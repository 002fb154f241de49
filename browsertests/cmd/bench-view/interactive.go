package main

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/ashlar-mem/ashlar/browsertests/page"
)

const (
	oneSetting = "#/1/whatif?sets=expandable_segments:True"
	twoCurves  = `document.querySelector('.curve.lines')?.dataset.lines === '2'`
	cause      = `document.querySelector('[data-field=cause]')`
)

// interactive measures pages that need no server, with a recording of 407,899
// events and with the million.
func interactive(ashlar string, b *page.Browser, dir, source, million string) error {
	_, empty, err := writeOffline(ashlar, filepath.Join(dir, "empty.html"))
	if err != nil {
		return err
	}
	row("page without a server, beyond its data", fmt.Sprintf("%.2f MB", float64(empty)/1e6), "5 MB")
	for _, f := range []struct{ file, what, opens, answers string }{
		{source, "407,899 events", "5 s", "0.3 s"},
		{million, "1,000,000 events", "", ""},
	} {
		address, size, err := writeOffline(ashlar, filepath.Join(dir, "page.html"), f.file)
		if err != nil {
			return err
		}
		row("page with "+f.what, fmt.Sprintf("%.2f MB", float64(size)/1e6), "")
		began := time.Now()
		p, err := b.Open(address, 1600, 900, false)
		if err != nil {
			return err
		}
		for _, step := range []struct{ hash, ready, what, bar string }{
			{"", numbers, "numbers and curve, from the opening on", f.opens},
			{"", cause, "verdict, from the opening on", f.opens},
			{"#/1/timeline", drawn, "timeline drawn, from its tab on", ""},
			{oneSetting, twoCurves, "what-if with one setting, from the question on", f.answers},
			{fiveSettings, curves, "what-if with five settings, from the question on", ""},
		} {
			if step.hash != "" {
				began = time.Now()
				if err := p.Go(step.hash); err != nil {
					return err
				}
			}
			took, err := until(p, began, step.ready)
			if err != nil {
				return fmt.Errorf("%s: %w", step.what, err)
			}
			row(step.what, seconds(took), step.bar)
		}
		p.Close()
	}
	return nil
}

// writeOffline writes a page that needs no server. It returns its address and
// size.
func writeOffline(ashlar, out string, files ...string) (string, int64, error) {
	if said, err := exec.Command(ashlar, append([]string{"report", "--interactive", "-o", out}, files...)...).CombinedOutput(); err != nil {
		return "", 0, fmt.Errorf("ashlar report: %w\n%s", err, said)
	}
	info, err := os.Stat(out)
	if err != nil {
		return "", 0, err
	}
	address := url.URL{Scheme: "file", Path: out}
	return address.String(), info.Size(), nil
}
