package main

import (
	"os"
	"path/filepath"

	"github.com/ashlar-mem/ashlar/browsertests/page"
)

// shoot takes pictures of the screen, wide and narrow, light and dark.
func (o *options) shoot(b *page.Browser, s *page.Server) error {
	if err := os.MkdirAll(o.shots, 0o755); err != nil {
		return err
	}
	const curves = "document.querySelector('.curve.lines')?.dataset.lines > 0"
	for _, shot := range []struct {
		name, hash, ready string
		width             int64
		dark              bool
	}{
		{"live-light", "#//live", allShown, 1440, false},
		{"live-dark", "#//live?sort=alarms", allShown, 1440, true},
		{"live-narrow", "#//live", allShown, 640, false},
		{"live-run-light", "#//live?job=run001.0", curves, 1440, false},
		{"live-run-dark", "#//live?job=run001.0&span=10m&number=allocated", curves, 1440, true},
		{"live-run-narrow", "#//live?job=run001.0", curves, 640, true},
		{"live-job-light", "#//live?job=job000-rank00000", curves, 1440, false},
	} {
		p, err := b.Open(s.Address+shot.hash, shot.width, 900, shot.dark)
		if err != nil {
			return err
		}
		if err := p.Until(shot.ready, patience); err != nil {
			return err
		}
		picture, err := p.Screenshot()
		p.Close()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(o.shots, shot.name+".png"), picture, 0o644); err != nil {
			return err
		}
	}
	return nil
}
