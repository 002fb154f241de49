package main

import (
	"fmt"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
)

// controlReport shows whether the checks can fail.
type controlReport struct {
	RecordStream bool   `json:"record_stream"` // was called
	Reused       bool   `json:"reused"`        // the next request got the same memory
	Words        uint64 `json:"words"`
	Mismatches   uint64 `json:"mismatching_words"`
	OK           bool   `json:"ok"`
}

func (c controlReport) String() string {
	call, reuse := "without", "got the same memory"
	if c.RecordStream {
		call = "with"
	}
	if !c.Reused {
		reuse = "got other memory"
	}
	return fmt.Sprintf("control %s record_stream: the next request %s, a late reader saw %d of %d words changed: %s",
		call, reuse, c.Mismatches, c.Words, verdict(c.OK))
}

const (
	controlSize  = 4 << 20
	controlDelay = 100 * time.Millisecond
)

// control is the mistake that record_stream is there for: a block is freed
// while another stream, which is late, has yet to read it, and its memory is
// handed out and overwritten on the first stream. Guarded, nothing may happen;
// unguarded, the check has to see the overwriting.
func control(r *rig, streams []uint64, paint painter, guarded bool) (*controlReport, error) {
	dev := newLedger(r.dev)
	a := alloc.New(dev)
	home, other := streams[1], streams[2]
	first, err := a.Malloc(controlSize, home)
	if err != nil {
		return nil, err
	}
	if err := paint.write(first, controlSize, 1, home); err != nil {
		return nil, err
	}
	ev, err := dev.RecordEvent(home, first)
	if err != nil {
		return nil, err
	}
	if err := dev.StreamWait(other, ev); err != nil {
		return nil, err
	}
	if err := paint.spin(other, controlDelay); err != nil {
		return nil, err
	}
	if err := paint.check(first, controlSize, 1, other, 0); err != nil {
		return nil, err
	}
	if guarded {
		if err := a.RecordStream(first, other); err != nil {
			return nil, err
		}
	}
	if err := a.Free(first); err != nil {
		return nil, err
	}
	second, err := a.Malloc(controlSize, home)
	if err != nil {
		return nil, err
	}
	if err := paint.write(second, controlSize, 2, home); err != nil {
		return nil, err
	}
	for _, s := range []uint64{home, other} {
		if err := dev.Synchronize(s); err != nil {
			return nil, err
		}
	}
	found, err := paint.results(1)
	if err != nil {
		return nil, err
	}
	for _, step := range []func() error{
		func() error { return dev.WaitEvent(ev) },
		func() error { return a.Free(second) },
		a.EmptyCache,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	c := &controlReport{RecordStream: guarded, Reused: first == second, Words: controlSize / 8, Mismatches: found[0].Bad}
	if guarded {
		c.OK = !c.Reused && c.Mismatches == 0
	} else {
		c.OK = c.Reused && c.Mismatches == c.Words
	}
	if s := dev.left(); s != "" {
		return nil, fmt.Errorf("the device has not got back %s", s)
	}
	return c, nil
}
