package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ashlar-mem/ashlar/browsertests/page"
	"github.com/ashlar-mem/ashlar/internal/test/planted"
)

var fleetPicture = picture{
	"fleet", "", "#//fleet?view=growth&of=run-00", "document.querySelectorAll('.fleet-stacks').length > 0", ".fleet-head", "[data-panel=growth]", 1240, 900,
}

// drawsFleet draws a run whose commits are planted: recorded, with requests made
// larger.
func drawsFleet(b *page.Browser, ashlar, out string) error {
	dir, err := os.MkdirTemp("", "ashlar-fleet")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p := planted.Usual()
	p.Seed, p.Files, p.Runs, p.Ranks, p.Commits, p.Causes, p.Failed = 1, 40, 1, 8, 8, 1, 0
	p.Bases = []string{"advice/llama_adam"}
	truth, err := planted.Write(context.Background(), "../testdata", filepath.Join(dir, "files"), p)
	if err != nil {
		return err
	}
	store := filepath.Join(dir, "store")
	if text, err := exec.Command(ashlar, "fleet", "add", "--dir", store, filepath.Join(dir, "files", "*", "*", "*.gz")).CombinedOutput(); err != nil {
		return fmt.Errorf("ashlar fleet add: %w: %s", err, text)
	}
	s, err := page.Fleet(ashlar, "--dir", store)
	if err != nil {
		return err
	}
	defer s.Close()
	x := fleetPicture
	x.ready += fmt.Sprintf(" && document.querySelector('.fleet-head').textContent.includes('%d files')", len(truth.Files))
	for _, dark := range []bool{false, true} {
		if err := drawOne(b, s, x, dark, out); err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
	}
	return nil
}
