package main

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
)

// phase distinguishes the walks over free memory that one operation may make:
// within a walk equal blocks go by address.
type phase struct {
	walk    int
	average float64 // a round of garbage collection has its own
}

// equals are releases that only their addresses put in order.
type equals struct {
	phase   phase
	action  string
	size    uint64 // of the free block
	granule uint64
	stream  uint64
	pool    alloc.PoolID
}

// misordered says where an operation gave equal blocks back in another order
// than that of their addresses; empty if nowhere. What is released to make room
// for one request goes by other rules, which releaseTie checks.
func (l *opLog) misordered() string {
	type place struct {
		action string
		addr   uint64
	}
	entries := map[place]entry{}
	for _, e := range l.entries {
		entries[place{e.Action, e.Addr}] = e
	}
	last := map[equals]uint64{}
	var now phase
	targeted := false
	for _, d := range l.decisions {
		k := equals{phase: now}
		var addr uint64
		switch d := d.(type) {
		case alloc.Collection, alloc.FullRelease:
			now = phase{walk: now.walk + 1}
			targeted = false
			continue
		case alloc.TargetedRelease:
			targeted = true
			continue
		case alloc.Aging:
			now.average = d.Average
			continue
		case alloc.Released:
			k.action, k.size, addr = alloc.ActionSegmentFree.String(), d.Segment.Size, d.Segment.Addr
		case alloc.Unmapping:
			k.action, k.size, k.granule, addr = alloc.ActionSegmentUnmap.String(), d.Block.Size, d.Granule, d.Unmapped.Addr
		default:
			continue
		}
		if targeted {
			continue
		}
		e, ok := entries[place{k.action, addr}]
		if !ok {
			return fmt.Sprintf("a release at %#x that left no event", addr)
		}
		k.stream, k.pool = e.Stream, e.Pool
		if before, ok := last[k]; ok && before >= addr {
			return fmt.Sprintf("%s came after the equally large block at %#x", e, before)
		}
		last[k] = addr
	}
	return ""
}
