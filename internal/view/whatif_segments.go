package view

import (
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/settings"
)

// variant is the state of a what-if at a moment, in the form of the recording's.
type variant struct {
	layout  *timeline.Map
	level   timeline.Level
	request *failedRequest
	failed  *int // the event of the first failed request so far
}

// asVariant reports whether a question about segments is about a what-if.
func (q *query) asVariant() bool { return q.values.Has("set") || q.flag("recorded") }

// variant replays the run under the settings of the question (set, or recorded=1
// for the recorded ones) up to an event.
func (r *request) variant(event int) (*variant, error) {
	bounds, recorded := r.query.conditions(), r.query.flag("recorded")
	var chosen settings.Settings
	if !recorded {
		s, err := whatif.ParseSetting(r.query.values.Get("set"))
		if err != nil {
			r.query.bad("%v", err)
		}
		chosen = s.Parsed
	}
	if r.query.err != nil {
		return nil, r.query.err
	}
	ctx := r.http.Context()
	of, err := r.run.checked(ctx)
	if err != nil {
		return nil, err
	}
	p := of.Program
	if recorded {
		chosen = p.Settings
		chosen.PerProcessMemoryFraction = 1 // it shows as the limit
	}
	limit, memory := bounds.bounds(of)
	c := replay.Conditions{Settings: chosen, Limit: limit.Value(), DeviceMemory: memory.Value()}
	if err := p.Runnable(c); err != nil {
		return nil, badRequest("%v", err)
	}
	m, err := p.HoldAfter(ctx, c, event)
	if err != nil {
		return nil, err
	}
	return r.run.newVariant(m, event), nil
}

func (r *pageRun) newVariant(m *replay.Paused, event int) *variant {
	owner := map[uint64]int32{}
	older := map[uint64]int32{}
	for i := range r.lives.Older {
		older[r.lives.Address(i)] = int32(i)
	}
	for _, l := range m.Live() {
		if l.Event >= 0 {
			owner[l.Address] = int32(r.lives.BlockOf(l.Event))
		} else if life, ok := older[l.Recorded]; ok {
			owner[l.Address] = life
		}
	}
	t := m.Totals()
	v := &variant{
		level: timeline.Level{Reserved: t.Reserved, Allocated: t.Allocated, Active: t.Active, Requested: t.Requested},
		layout: timeline.NewMap(event, m.Segments(), func(address uint64) int32 {
			if life, ok := owner[address]; ok {
				return life
			}
			return -1
		}),
	}
	if f := m.First(); f != nil {
		v.failed = &f.Event
		if f.Event == event && !f.AtStart {
			v.request = &failedRequest{Size: f.Requested, Segment: f.Segment, Stream: f.Stream, Event: event, Free: f.DeviceFree}
		}
	}
	return v
}
