package main

import (
	"cmp"
	"slices"
)

// pairing matches the segments of two runs. Addresses say nothing across runs,
// but what both got from their device at the same step of the same work is the
// same segment, and an address is then known by its offset in it.
type pairing struct {
	pairs []pair // by ref
}

// pair is one plain segment or one reserved range in both runs.
type pair struct {
	ref, dev, size uint64
}

// add matches a segment. Both runs must have given the addresses back before.
func (p *pairing) add(ref, dev, size uint64) {
	i := p.find(ref)
	p.pairs = slices.Insert(p.pairs, i, pair{ref, dev, size})
}

// remove forgets the segment that starts at ref.
func (p *pairing) remove(ref uint64) {
	if i := p.find(ref); i < len(p.pairs) && p.pairs[i].ref == ref {
		p.pairs = slices.Delete(p.pairs, i, i+1)
	}
}

// find is the position of the first segment at or above ref.
func (p *pairing) find(ref uint64) int {
	i, _ := slices.BinarySearchFunc(p.pairs, ref, func(q pair, a uint64) int { return cmp.Compare(q.ref, a) })
	return i
}

// whole reports whether size bytes at ref are a segment.
func (p *pairing) whole(ref, size uint64) bool {
	i := p.find(ref)
	return i < len(p.pairs) && p.pairs[i].ref == ref && p.pairs[i].size == size
}

// exchange matches two segments of one size the other way round.
func (p *pairing) exchange(ref1, ref2 uint64) {
	x, y := &p.pairs[p.find(ref1)], &p.pairs[p.find(ref2)]
	x.dev, y.dev = y.dev, x.dev
}

// toDev translates an address of the reference run.
func (p *pairing) toDev(ref uint64) (uint64, bool) {
	i := p.find(ref)
	if i == len(p.pairs) || p.pairs[i].ref != ref {
		i--
	}
	if i < 0 || ref-p.pairs[i].ref >= p.pairs[i].size {
		return 0, false
	}
	return p.pairs[i].dev + (ref - p.pairs[i].ref), true
}

// toRef translates an address of the other run.
func (p *pairing) toRef(dev uint64) (uint64, bool) {
	for _, q := range p.pairs {
		if dev >= q.dev && dev-q.dev < q.size {
			return q.ref + (dev - q.dev), true
		}
	}
	return 0, false
}

// refPlace and devPlace say in which segment an address is, and where in it.
// Segments are numbered in the order of the reference run's addresses.
func (p *pairing) refPlace(ref uint64) (n int, offset uint64, ok bool) {
	for i, q := range p.pairs {
		if ref >= q.ref && ref-q.ref < q.size {
			return i, ref - q.ref, true
		}
	}
	return 0, 0, false
}

func (p *pairing) devPlace(dev uint64) (n int, offset uint64, ok bool) {
	ref, ok := p.toRef(dev)
	if !ok {
		return 0, 0, false
	}
	return p.refPlace(ref)
}
