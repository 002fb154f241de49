package main

import (
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
)

// Garbage collection after a tie explains what is given back and nothing else.
func TestExplained(t *testing.T) {
	free := entry{Action: alloc.ActionSegmentFree.String(), Size: 20 << 20}
	got := entry{Action: alloc.ActionSegmentAlloc.String(), Size: 20 << 20}
	for _, x := range []struct {
		name, file string
		parted     *difference
		failed     error
		want       bool
	}{
		{"nothing", "oracle/mixed-gc6-1", nil, nil, false},
		{"a tie", "oracle/mixed-default-1", &difference{Tie: &tie{}}, nil, true},
		{"a tie, then a failure", "oracle/mixed-default-1", &difference{Tie: &tie{}}, errBroken, false},
		{"another release", "oracle/mixed-gc6-1", &difference{ref: []entry{free}, dev: []entry{free}}, nil, true},
		{"a release in one run only", "oracle/mixed-gc6-1", &difference{ref: []entry{got}, dev: []entry{free}}, nil, true},
		{"another segment", "oracle/mixed-gc6-1", &difference{ref: []entry{got}, dev: []entry{got}}, nil, false},
		{"a statistic", "oracle/mixed-gc6-1", &difference{}, nil, false},
		{"another release, but nothing is collected", "oracle/mixed-default-1", &difference{ref: []entry{free}, dev: []entry{free}}, nil, false},
	} {
		dev := newScattered(1)
		c := &checker{dev: dev}
		rec := load(t, x.file)
		streams, err := c.streamsFor(rec)
		if err != nil {
			t.Fatal(err)
		}
		l, err := newLockstep(rec, nil, dev, streams)
		if err != nil {
			t.Fatal(err)
		}
		l.ties = []*tie{{}}
		if got := l.explained(&outcome{parted: x.parted, failed: x.failed}); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
		l.ties = nil
		if x.parted != nil && x.parted.Tie == nil && l.explained(&outcome{parted: x.parted}) {
			t.Errorf("%s: explained without a tie", x.name)
		}
	}
}

// Blocks of expandable segments are chosen by their room, not by their address
// alone.
func TestTieRoom(t *testing.T) {
	l := &lockstep{}
	d := &difference{ref: []entry{{Addr: 1}}, dev: []entry{{Addr: 2}}}
	fit := func(addr, room uint64) []alloc.Decision {
		return []alloc.Decision{alloc.BestFit{Block: alloc.Span{Addr: addr, Size: 20}, GrowableSize: room}}
	}
	l.ref.log.decisions, l.dev.log.decisions = fit(1, 100), fit(2, 200)
	if tie, why := l.blockTie(d); tie != nil || !strings.Contains(why, "room to grow: 100 and 200 bytes") {
		t.Errorf("%v, %s", tie, why)
	}
}
