package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/recorded"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/replay"
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

	// At the addresses that the device gave.
	Checkpoints      int         `json:"checkpoints"`
	CheckpointsEqual int         `json:"checkpoints_equal"` // with every statistic as recorded
	LayoutEqual      bool        `json:"layout_equal"`
	Parted           *difference `json:"parted,omitempty"` // the first difference
	Tie              *tie        `json:"tie,omitempty"`    // which was a tie
	NotTie           string      `json:"not_a_tie,omitempty"`
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
			var input *replay.InputError
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
	rec, err := replay.Load(ctx, replay.File(path))
	if err != nil {
		return nil, err
	}
	return c.recording(ctx, rec)
}

// recording performs one recording.
func (c *checker) recording(ctx context.Context, rec *replay.Recording) (*oracleResult, error) {
	known, err := replay.Verify(ctx, rec)
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
	r := &oracleResult{Operations: len(rec.Ops), Checkpoints: len(rec.Checkpoints)}
	if err := c.native(ctx, rec, known.Waited, streams, r); err != nil {
		return nil, err
	}
	r.OK = r.LayoutEqual && r.CheckpointsEqual == r.Checkpoints
	if r.Tie != nil || c.both {
		if err := c.inRecordedOrder(ctx, rec, streams, r); err != nil {
			return nil, err
		}
		r.OK = (r.OK || r.Tie != nil) && r.Recorded.Identical
	}
	return r, nil
}

// native performs the recording at the addresses that the device gives.
func (c *checker) native(ctx context.Context, rec *replay.Recording, waited []int, streams []uint64, r *oracleResult) (err error) {
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
	r.Performed, r.CheckpointsEqual = out.Performed, out.Equal
	r.LayoutEqual = out.first == nil
	r.Parted, r.Tie, r.NotTie = out.first, out.tie, out.notTie
	r.Reordered = out.Reordered
	r.EventsDone, r.EventsWaited, r.EventsHeld = out.Events.instant, out.Events.waited, out.Events.held
	r.Calls = dev.count()
	return nil
}

// inRecordedOrder performs the recording on the device with ties broken as
// they were in the recording.
func (c *checker) inRecordedOrder(ctx context.Context, rec *replay.Recording, streams []uint64, r *oracleResult) (err error) {
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
	got, err := replay.VerifyOver(ctx, rec, func(answers *recorded.Driver) driver.Driver {
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
func (c *checker) streamsFor(rec *replay.Recording) ([]uint64, error) {
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

// write prints the report as a table, and below it the proof of every tie.
func (r *oracleReport) write(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", r.Device)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "recording\toperations\tstatistics\tlayout\tties as recorded\t")
	good, equal, ties := 0, 0, 0
	for i := range r.Recordings {
		x := &r.Recordings[i]
		if x.OK {
			good++
		}
		if x.Tie != nil {
			ties++
		} else if x.LayoutEqual {
			equal++
		}
		fmt.Fprintf(tw, "%s\t%d\t%s\t%s\t%s\t\n", strings.TrimSuffix(x.File, ".json.gz"), x.Operations, x.statistics(), x.layout(), x.inOrder())
	}
	tw.Flush()
	for i := range r.Recordings {
		r.Recordings[i].explain(w)
	}
	fmt.Fprintf(w, "\n%d of %d recordings: layout and statistics equal in %d, parted at a tie that is shown in %d, otherwise different in %d\n",
		good, len(r.Recordings), equal, ties, len(r.Recordings)-equal-ties)
}

func (r *oracleResult) statistics() string {
	s := fmt.Sprintf("%d of %d", r.CheckpointsEqual, r.Checkpoints)
	if r.Tie != nil {
		s += " (parted)"
	}
	return s
}

func (r *oracleResult) layout() string {
	switch {
	case r.Error != "":
		return "failed"
	case r.LayoutEqual:
		return "equal"
	case r.Tie != nil:
		return fmt.Sprintf("parted at operation %d: a tie", r.Tie.Operation)
	}
	return fmt.Sprintf("DIFFERENT at operation %d", r.Parted.Operation)
}

func (r *oracleResult) inOrder() string {
	switch {
	case r.Recorded == nil:
		return "-"
	case r.Recorded.Identical:
		return fmt.Sprintf("identical, %s events", units.Count(int64(r.Recorded.Events)))
	}
	return "DIFFERENT"
}

// candidatesShown is how many blocks of a tie are listed.
const candidatesShown = 8

// explain prints what a reader needs to judge a recording that is not equal.
func (r *oracleResult) explain(w io.Writer) {
	switch {
	case r.Error != "":
		fmt.Fprintf(w, "\n%s: %s\n", r.File, r.Error)
		return
	case r.Parted != nil:
		d := r.Parted
		fmt.Fprintf(w, "\n%s, operation %d (%s): %s\n", r.File, d.Operation, d.Text, d.What)
		fmt.Fprintf(w, "  recorded:      %s\n  on the device: %s\n", orNothing(d.Recorded), orNothing(d.Device))
	}
	switch {
	case r.Tie != nil:
		r.Tie.write(w)
	case r.NotTie != "":
		fmt.Fprintf(w, "  not a tie: %s\n", r.NotTie)
	}
	if r.Recorded != nil && !r.Recorded.Identical {
		fmt.Fprintf(w, "  with ties broken as recorded: %s\n", r.Recorded.First)
	}
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

func (t *tie) write(w io.Writer) {
	half := "small"
	if t.Large {
		half = "large"
	}
	fmt.Fprintf(w, "  a tie: the %s is one of %d of %s in the %s pool of stream %d; the addresses decide:\n",
		t.Choice, len(t.Candidates), units.Size(t.SizeBytes), half, t.Stream)
	for i, c := range t.Candidates {
		mark := ""
		if c.Recorded {
			mark += "  <- taken in the recording"
		}
		if c.Device {
			mark += "  <- taken on the device"
		}
		if i < candidatesShown || mark != "" {
			fmt.Fprintf(w, "    recorded %#x  device %#x%s\n", c.RecordedAddr, c.DeviceAddr, mark)
		}
	}
}
