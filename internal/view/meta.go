package view

import (
	"math"

	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// The longest lists that every screen gets.
const (
	maxOOMs   = 1000
	maxRanges = 5000
)

// peakAt is the first moment at which a sum was highest.
type peakAt struct {
	Event int    `json:"event"`
	Bytes uint64 `json:"bytes"`
}

// limit is what is known of the cap on reserved memory.
type limit struct {
	Bytes  *uint64 `json:"bytes"`
	Min    *uint64 `json:"min_bytes"`
	Max    *uint64 `json:"max_bytes"`
	Source string  `json:"source"`
}

type step struct {
	Number   int  `json:"number"`
	Begin    int  `json:"begin"`
	End      int  `json:"end"`
	Complete bool `json:"complete"`
}

// span is a range that the program named.
type span struct {
	Name       string `json:"name"`
	BeginTime  *int64 `json:"begin_time"`
	EndTime    *int64 `json:"end_time"`
	BeginEvent int    `json:"begin_event"`
	EndEvent   int    `json:"end_event"`
	Depth      int    `json:"depth"`
}

// overview is what every screen needs once.
type overview struct {
	Device    *int   `json:"device"`
	Host      bool   `json:"host"`
	Events    int    `json:"events"`
	FirstTime *int64 `json:"first_time"`
	LastTime  *int64 `json:"last_time"`
	Peak      struct {
		Allocated peakAt `json:"allocated"`
		Reserved  peakAt `json:"reserved"`
	} `json:"peak"`
	Exact       bool    `json:"exact"`
	AtLeast     bool    `json:"at_least"`
	OOMs        []int   `json:"ooms"`
	OOMCount    int     `json:"oom_count"`
	Limit       limit   `json:"limit"`
	DeviceBytes *uint64 `json:"device_bytes"`
	Available   *uint64 `json:"available_bytes"`
	// AvailableFrom is where Available comes from, as in [whatif.Bound].
	AvailableFrom string              `json:"available_source"`
	Streams       []uint64            `json:"streams"`
	Pools         [][2]uint64         `json:"pools"`
	PoolUnknown   bool                `json:"pool_unknown"` // of some blocks
	Colouring     string              `json:"default_color"`
	Steps         []step              `json:"steps"`
	StepsSource   string              `json:"steps_source"`
	StepsDetail   string              `json:"steps_detail"`
	Ranges        []span              `json:"ranges"`
	Categories    []findings.Category `json:"categories"`
	Start         string              `json:"start"`
	Older         int                 `json:"older"`
	Allocs        int                 `json:"allocs"`
	MaxLive       uint64              `json:"max_live_bytes"`
	MaxReserved   uint64              `json:"max_reserved_bytes"`
}

// meta is api/meta.
func (r *request) meta() error { return r.json(r.run.overview()) }

func (r *pageRun) newOverview() *overview {
	high, _ := r.course.Highest(0, r.events()-1)
	o := &overview{
		Host: r.trace.Host, Events: r.events(), Exact: r.lives.Exact, AtLeast: r.line.AtLeast, OOMs: []int{}, OOMCount: len(r.peaks.OOMs),
		Streams: append([]uint64{}, r.streamIDs...), Pools: [][2]uint64{}, Steps: []step{}, StepsSource: r.steps.Source, StepsDetail: r.steps.Detail,
		Ranges: []span{}, Categories: findings.Categories(), Start: r.line.Start.Kind, Older: r.lives.Older, Allocs: r.lives.Len(),
		MaxLive: high.Active, MaxReserved: high.Reserved,
	}
	if !r.trace.Host {
		o.Device = &r.trace.Device
	}
	if r.clock.First != trace.NoTime {
		o.FirstTime, o.LastTime = &r.clock.First, &r.clock.Last
	}
	o.Peak.Allocated, o.Peak.Reserved = r.allocatedPeak(), peakAt{r.peaks.Reserved.Event, r.peaks.Reserved.Value}
	for _, m := range r.peaks.OOMs[:min(len(r.peaks.OOMs), maxOOMs)] {
		o.OOMs = append(o.OOMs, m.Index)
	}
	for _, p := range r.lives.Pools {
		o.Pools = append(o.Pools, [2]uint64{p.First, p.Second})
	}
	for i := 0; i < r.lives.Len() && !o.PoolUnknown; i++ {
		o.PoolUnknown = r.lives.Pool(i) == timeline.NoPoolKnown
	}
	o.Colouring = r.defaultColouring()
	for _, s := range r.steps.List {
		o.Steps = append(o.Steps, step{s.Number, s.Begin, s.End, s.Complete})
	}
	r.bounds(o)
	o.Ranges = append(o.Ranges, r.ranges()...)
	return o
}

// allocatedPeak is by size of blocks if that is known, else by what was
// requested.
func (r *pageRun) allocatedPeak() peakAt {
	if r.line.Exact {
		return peakAt{r.peaks.Allocated.Event, r.peaks.Allocated.Value}
	}
	if r.events() == 0 {
		return peakAt{-1, r.course.At(-1).Allocated}
	}
	return peakAt{r.peaks.Requested.Event, r.peaks.Requested.Value}
}

// bounds finds the limit and the size of the device, as whatif does.
func (r *pageRun) bounds(o *overview) {
	o.Limit.Source, o.AvailableFrom = whatif.None, whatif.None
	if r.trace.Host {
		return
	}
	l, memory := whatif.RecordedBounds(r.loaded, r.replayed, r.peaks)
	o.Limit = limit{l.Bytes, l.Min, l.Max, l.Source}
	o.Available, o.AvailableFrom = memory.Bytes, memory.Source
	if f := r.loaded.Facts; f != nil {
		if d := f.DeviceFacts(r.trace.Device); d != nil {
			if o.DeviceBytes = d.TotalBytes; o.DeviceBytes == nil {
				o.DeviceBytes = d.TotalMemory
			}
		}
	}
}

// ranges lists the named ranges of the program; a depth counts those around.
func (r *pageRun) ranges() []span {
	var out []span
	var open []int64 // ends of the ranges around
	for _, g := range r.program.Ranges[:min(len(r.program.Ranges), maxRanges)] {
		s := span{Name: g.Name, EndEvent: r.events()}
		if g.Begin != math.MinInt64 {
			s.BeginTime, s.BeginEvent = &g.Begin, r.clock.Before(g.Begin)
		}
		if g.End != math.MaxInt64 {
			s.EndTime, s.EndEvent = &g.End, r.clock.Before(g.End)
		}
		for len(open) > 0 && open[len(open)-1] <= g.Begin {
			open = open[:len(open)-1]
		}
		s.Depth = len(open)
		open = append(open, g.End)
		out = append(out, s)
	}
	return out
}
