package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/oracle"
	"github.com/ashlar-mem/ashlar/internal/replay/recorded"
)

// oracleReport is what `gpucheck oracle` found.
type oracleReport struct {
	Device     deviceInfo     `json:"device"`
	Recordings []oracleResult `json:"recordings"`
	OK         bool           `json:"ok"`
}

// oracleResult is one recording performed on the device.
type oracleResult struct {
	File       string `json:"file"`
	OK         bool   `json:"ok"`
	Error      string `json:"error,omitempty"`
	Operations int    `json:"operations"`
	Performed  int    `json:"operations_performed"`
	TotalBytes uint64 `json:"recorded_total_bytes"` // memory of the recorded device, by which limits are scaled

	// At the addresses that the device gave.
	Checkpoints      int         `json:"checkpoints"`
	CheckpointsEqual int         `json:"checkpoints_equal"` // with every statistic as recorded
	LayoutEqual      bool        `json:"layout_equal"`
	Ties             int         `json:"ties"`
	FirstTie         *tie        `json:"first_tie,omitempty"`
	Parted           *difference `json:"parted,omitempty"`   // what could not be settled
	Explained        bool        `json:"explained"`          // Parted is a tie, or follows from one
	Failed           string      `json:"failed,omitempty"`   // what the device answered, where the run was stopped
	Refused          int         `json:"refused_in_one_run"` // by the limit, after the runs had parted
	Reordered        int         `json:"releases_reordered"`
	EventsDone       int64       `json:"events_done"`   // when the recording had them done
	EventsWaited     int64       `json:"events_waited"` // for the device, which had not
	EventsHeld       int64       `json:"events_held"`   // answers "not done" taken from the recording

	// With ties broken as recorded, if the order of addresses parted the runs.
	Recorded *recordedOrder `json:"recorded_order,omitempty"`

	Calls   calls   `json:"device_calls"`
	Seconds float64 `json:"seconds"`
}

// recordedOrder is the outcome of the second run.
type recordedOrder struct {
	Identical bool               `json:"identical"`
	Events    int                `json:"events"`
	Same      int                `json:"events_identical"`
	First     *replay.Difference `json:"first_difference,omitempty"`
}

// checker performs recordings on a device.
type checker struct {
	dev     driver.Copier
	streams []uint64       // made so far, ascending
	both    bool           // make the second run also where the first one did not part
	options []alloc.Option // for tests: what makes the engine another one
}

// oracle checks all files.
func (c *checker) oracle(ctx context.Context, files []string, each func(*oracleResult)) (*oracleReport, error) {
	report := &oracleReport{Device: describeDevice(c.dev), OK: true}
	defer c.close()
	for _, f := range files {
		start := time.Now()
		r, err := c.file(ctx, f)
		if err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			var input *oracle.InputError
			if errors.As(err, &input) {
				return nil, err
			}
			r = &oracleResult{File: f, Error: err.Error()}
		}
		r.File = filepath.Base(f)
		r.Seconds = time.Since(start).Seconds()
		report.OK = report.OK && r.OK
		report.Recordings = append(report.Recordings, *r)
		each(r)
	}
	return report, nil
}

func (c *checker) file(ctx context.Context, path string) (*oracleResult, error) {
	rec, err := oracle.Load(ctx, oracle.File(path))
	if err != nil {
		return nil, err
	}
	return c.recording(ctx, rec)
}

// recording performs one recording.
func (c *checker) recording(ctx context.Context, rec *oracle.Recording) (*oracleResult, error) {
	known, err := oracle.Verify(ctx, rec)
	if err != nil {
		return nil, err
	}
	if !known.Identical {
		return nil, fmt.Errorf("the engine differs from the recording even without a device: %s", known.First)
	}
	streams, err := c.streamsFor(rec)
	if err != nil {
		return nil, err
	}
	r := &oracleResult{Operations: len(rec.Ops), Checkpoints: len(rec.Checkpoints), TotalBytes: rec.TotalMemory}
	if err := c.native(ctx, rec, known.Waited, streams, r); err != nil {
		return nil, err
	}
	complete := r.Performed == r.Operations && r.Failed == ""
	r.OK = complete && r.LayoutEqual && r.CheckpointsEqual == r.Checkpoints
	if r.Explained || c.both {
		if err := c.inRecordedOrder(ctx, rec, streams, r); err != nil {
			return nil, err
		}
		r.OK = complete && (r.OK || r.Explained) && r.Recorded.Identical
	}
	return r, nil
}

// native performs the recording at the addresses that the device gives.
func (c *checker) native(ctx context.Context, rec *oracle.Recording, waited []int, streams []uint64, r *oracleResult) (err error) {
	dev := newLedger(c.dev)
	defer func() { err = errors.Join(err, dev.release()) }()
	l, err := newLockstep(rec, waited, dev, streams, c.options...)
	if err != nil {
		return err
	}
	out, err := l.run(ctx)
	if err != nil {
		return err
	}
	r.Performed, r.CheckpointsEqual = out.performed, out.equal
	r.Parted, r.LayoutEqual = out.parted, out.parted == nil
	if r.Ties = len(l.ties); r.Ties > 0 {
		r.FirstTie = l.ties[0]
	}
	r.Explained = l.explained(out)
	if out.failed != nil {
		r.Failed = out.failed.Error()
	}
	r.Reordered, r.Refused = l.reordered, out.refused
	r.EventsDone, r.EventsWaited, r.EventsHeld = l.guide.instant, l.guide.waited, l.guide.held
	r.Calls = dev.count()
	return nil
}

// inRecordedOrder performs the recording on the device with ties broken as
// they were in the recording.
func (c *checker) inRecordedOrder(ctx context.Context, rec *oracle.Recording, streams []uint64, r *oracleResult) (err error) {
	handles := map[uint64]uint64{}
	for i, s := range rec.Streams {
		handles[s] = streams[i]
	}
	var dev *ledger
	var cleanup []error
	release := func() {
		if dev != nil {
			cleanup = append(cleanup, dev.release())
		}
	}
	got, err := oracle.VerifyOver(ctx, rec, func(answers *recorded.Driver) driver.Driver {
		release()
		dev = newLedger(c.dev)
		return newShadow(answers, dev, handles)
	})
	release()
	if err = errors.Join(append(cleanup, err)...); err != nil {
		return err
	}
	r.Recorded = &recordedOrder{Identical: got.Identical, Events: got.Events, Same: got.IdenticalEvents, First: got.First}
	return nil
}

// streamsFor gives a real stream for each recorded one. Pools are walked in
// the order of their streams' handles, so the real handles are in the same
// order as the recorded ones. Stream 0 is the default stream everywhere.
func (c *checker) streamsFor(rec *oracle.Recording) ([]uint64, error) {
	handles := slices.Clone(rec.Streams)
	slices.Sort(handles)
	handles = slices.DeleteFunc(slices.Compact(handles), func(h uint64) bool { return h == 0 })
	for len(c.streams) < len(handles) {
		s, err := c.dev.NewStream()
		if err != nil {
			return nil, fmt.Errorf("making a stream: %w", err)
		}
		c.streams = append(c.streams, s)
		slices.Sort(c.streams)
	}
	out := make([]uint64, len(rec.Streams))
	for i, h := range rec.Streams {
		if n, ok := slices.BinarySearch(handles, h); ok {
			out[i] = c.streams[n]
		}
	}
	return out, nil
}

func (c *checker) close() {
	for _, s := range c.streams {
		_ = c.dev.CloseStream(s)
	}
	c.streams = nil
}
