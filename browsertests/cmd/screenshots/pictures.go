package main

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"time"

	"github.com/ashlar-mem/ashlar/browsertests/page"
)

// A picture is a part of the page for the README: from the first element to the
// last.
type picture struct {
	name, file, hash, ready string
	first, last             string
	width, height           int64
}

var pictures = []picture{
	{
		"overview", "../testdata/snapshots/leak_graph-tight-default.pickle.gz", "#/1/overview?fix=0",
		"document.querySelector('[data-field=first]') && document.querySelector('.curve canvas')",
		"[data-panel=verdict]", "[data-panel=memory]", 1000, 840,
	},
	{
		"whatif", "../testdata/snapshots/llama_ckpt-default.pickle.gz", "#/1/whatif?sets=expandable_segments:True", answered,
		"[data-panel=whatif-curves]", "[data-panel=whatif-curves]", 1240, 900,
	},
	{
		"timeline", "../testdata/snapshots/llama_ckpt-tight-default.pickle.gz", "#/1/timeline?color=category&event=OOM",
		"document.querySelector('.plot')?.dataset.drawn > 0", "main", "main", 1240, 620,
	},
	{
		"plan", "", "#//plan?v=1&shape=llama-3.1-8b&batch=2&seq=4096&gpu=h100", planned, "main", "main", 1240, 760,
	},
}

// draws takes the pictures at two pixels of the device each, light and dark.
func draws(b *page.Browser, ashlar, out string) error {
	for _, p := range pictures {
		var files []string
		if p.file != "" {
			files = []string{p.file}
		}
		s, err := page.Serve(ashlar, files...)
		if err != nil {
			return err
		}
		for _, dark := range []bool{false, true} {
			if err := drawOne(b, s, p, dark, out); err != nil {
				_ = s.Close()
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
		if err := s.Close(); err != nil {
			return err
		}
	}
	if err := drawsFleet(b, ashlar, out); err != nil {
		return err
	}
	return drawsLive(b, ashlar, out)
}

func drawOne(b *page.Browser, s *page.Server, x picture, dark bool, out string) error {
	p, err := b.Open(s.Address+"#/1/overview", x.width, x.height, dark)
	if err != nil {
		return err
	}
	defer p.Close()
	if x.file != "" {
		if err := p.Until("document.querySelector('footer .where')", 20*time.Second); err != nil {
			return err
		}
	}
	hash, err := p.Fill(x.hash)
	if err != nil {
		return err
	}
	if err := p.Go(hash); err != nil {
		return err
	}
	for _, ready := range []string{x.ready, idle} {
		if err := p.Until(ready, 20*time.Second); err != nil {
			return err
		}
	}
	time.Sleep(500 * time.Millisecond) // the last frames
	first, err := p.Box(x.first)
	if err != nil {
		return err
	}
	last, err := p.Box(x.last)
	if err != nil {
		return err
	}
	shot, err := p.Screenshot()
	if err != nil {
		return err
	}
	whole, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return err
	}
	sharp := float64(whole.Bounds().Dx()) / float64(x.width)
	at := func(n float64) int { return int(n*sharp + 0.5) }
	part := image.Rect(at(first[0]), at(first[1]), at(max(first[0]+first[2], last[0]+last[2])), at(last[1]+last[3])).Intersect(whole.Bounds())
	cut := image.NewRGBA(image.Rect(0, 0, part.Dx(), part.Dy()))
	draw.Draw(cut, cut.Bounds(), whole, part.Min, draw.Src)
	theme := "light"
	if dark {
		theme = "dark"
	}
	f, err := os.Create(filepath.Join(out, x.name+"-"+theme+".png"))
	if err != nil {
		return err
	}
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(f, cut); err != nil {
		return err
	}
	fmt.Println(f.Name(), part.Dx(), part.Dy())
	return f.Close()
}
