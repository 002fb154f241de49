package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/serve"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Serve writes what a server has left for its cache.
func Serve(w io.Writer, name string, a *serve.Answer, style Style) error {
	p := &page{w: w, style: style}
	p.verdict(serveVerdict(a))
	if a.Tokens > 0 {
		p.wrapped("  ", serveRoom(a))
	}
	switch {
	case a.Smallest != "":
		p.wrapped("  ", fmt.Sprintf("The smallest card that holds one such request is %s.", a.Smallest))
	case a.Engine == "vllm":
		p.wrapped("  ", fmt.Sprintf("No known card holds one such request with --tp %d: give more ranks or a shorter length.", a.TP))
	}
	p.printf("\n")
	p.name("", name)
	p.wrapped("  ", serveSubject(a))
	p.serveParts(a)
	p.list("Assumed", a.Assumed)
	p.list("Not modelled", a.NotModelled)
	return p.err
}

func serveSubject(a *serve.Answer) string {
	if a.Engine == "hf" {
		return fmt.Sprintf("%s, generate() of transformers, preset %s", a.Model, a.Version)
	}
	said := fmt.Sprintf("%s, vLLM %s", a.Model, a.Version)
	if a.TP > 1 {
		said += fmt.Sprintf(", %d ranks: figures are those of one", a.TP)
	}
	return said
}

// serveVerdict says whether a request of the maximal length fits.
func serveVerdict(a *serve.Answer) string {
	length, without := units.Count(a.MaxModelLen), strings.TrimRight(" "+withoutText(a.LeavesOut), " ")
	switch {
	case a.Fits == nil && a.Smallest == "":
		return fmt.Sprintf("Not even %s holds a request of %s tokens.", a.Card, length)
	case a.Fits == nil:
		return fmt.Sprintf("On %s a request of %s tokens fits.", a.Card, length)
	case *a.Fits && a.Engine == "hf":
		return fmt.Sprintf("FITS%s: a batch of %s requests of %s tokens on %s.", without, units.Count(a.MaxSeqs), length, a.Card)
	case *a.Fits:
		return fmt.Sprintf("FITS%s: %.2f requests of %s tokens at once on %s.", without, a.Concurrency, length, a.Card)
	case a.Engine == "hf":
		return fmt.Sprintf("DOES NOT FIT: not one request of %s tokens on %s.", length, a.Card)
	case a.Available <= 0:
		return fmt.Sprintf("DOES NOT FIT: %s is missing on %s before the cache begins.", units.Size(uint64(-a.Available)), a.Card)
	}
	return fmt.Sprintf("DOES NOT FIT: a request of %s tokens needs %s of cache, and %s has %s left.",
		length, units.Size(uint64(a.SequenceBytes)), a.Card, units.Size(uint64(a.Available)))
}

// serveRoom says what the cache holds.
func serveRoom(a *serve.Answer) string {
	if a.Engine == "hf" {
		return fmt.Sprintf("%s tokens of cache, %s a token.", units.Count(a.Tokens), units.Size(uint64(a.TokenBytes)))
	}
	return fmt.Sprintf("%s tokens of cache in %s blocks; %s a token, %s a request of the maximal length.",
		units.Count(a.Tokens), units.Count(a.Blocks), units.Size(uint64(a.TokenBytes)), units.Size(uint64(a.SequenceBytes)))
}

// serveParts lists where the memory goes.
func (p *page) serveParts(a *serve.Answer) {
	const row = "  %-16s %12s   %s"
	if a.Engine == "hf" {
		p.heading("What the peak is made of", "")
		for _, x := range a.Parts {
			p.line(row, x.Name, units.Size(x.Bytes), "")
		}
		return
	}
	p.heading("Where the memory goes", "")
	p.line(row, "card", units.Size(a.TotalBytes), fmt.Sprintf("%g of it for vLLM: %s", a.Utilization, units.Size(a.UsableBytes)))
	for _, x := range a.Parts {
		p.wrapped(fmt.Sprintf("  %-16s %12s   ", x.Name, units.Size(x.Bytes)), x.Source)
	}
	left := units.Delta(a.Available)
	if a.Available >= 0 {
		left = units.Size(uint64(a.Available))
	}
	p.line(row, "left for cache", left, fmt.Sprintf("blocks of %s tokens, %s", units.Count(a.BlockSize), units.Size(uint64(a.BlockBytes))))
	if !a.Measured {
		p.wrapped("  note: ", "compared with public logs, not with runs of this project: docs/serve.md")
	}
}
