package view

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// failedRequest is the request of an oom event.
type failedRequest struct {
	Size    uint64 `json:"size_bytes"`
	Segment uint64 `json:"segment_bytes"`
	Stream  uint64 `json:"stream"`
	Event   int    `json:"event"`
	Free    uint64 `json:"device_free_bytes"`
}

// segmentMap is the segments after an event and what is in them.
type segmentMap struct {
	segmentTotals
	Segments []segment `json:"segments"`
}

type segmentTotals struct {
	Event       int            `json:"event"`
	Time        *int64         `json:"time"`
	Reserved    uint64         `json:"reserved_bytes"`
	Allocated   uint64         `json:"allocated_bytes"`
	Active      uint64         `json:"active_bytes"`
	Pending     uint64         `json:"pending_bytes"`
	Requested   uint64         `json:"requested_bytes"`
	Free        uint64         `json:"free_bytes"`
	LargestFree uint64         `json:"largest_free_bytes"`
	Request     *failedRequest `json:"request"`
	Failed      *int           `json:"first_failure"` // of a what-if, so far
}

// segment is what appendSegment writes.
type segment struct {
	Address    uint64     `json:"address"`
	Size       uint64     `json:"size_bytes"`
	Span       uint64     `json:"span_bytes"` // with what is not mapped
	Stream     uint64     `json:"stream"`
	Pool       *[2]uint64 `json:"pool"`
	Type       *string    `json:"type"`
	Expandable bool       `json:"expandable"`
	Blocks     []block    `json:"blocks"`
	Colours    []uint32   `json:"colours"` // of the blocks; 0 if nothing is in one
}

// block is the offset, size, state, allocation or -1, and what was requested.
type block [5]int64

// segments is api/segments: a segmentMap. The list of blocks is long, so it is written without
// a detour.
func (r *request) segments() error {
	event := r.query.event("event", r.run.events()-1, r.run)
	by := r.query.choice("color", momentColourings...)
	if r.query.err != nil {
		return r.query.err
	}
	v := &variant{request: r.run.failedRequest(event)}
	if r.query.asVariant() {
		var err error
		if v, err = r.variant(event); err != nil {
			return err
		}
	} else {
		v.layout, v.level = r.run.layout.At(event), r.run.course.At(event)
	}
	m, level := v.layout, v.level
	head, err := json.Marshal(segmentTotals{
		event, r.run.time(event), level.Reserved, level.Allocated, level.Active, level.Pending(), level.Requested,
		m.Free, m.LargestFree, v.request, v.failed,
	})
	if err != nil {
		return err
	}
	b := append(head[:len(head)-1], `,"segments":[`...)
	paint := r.run.painterAt(event, by)
	for i := range m.Segments {
		if i > 0 {
			b = append(b, ',')
		}
		b = r.run.appendSegment(b, &m.Segments[i], paint)
	}
	return r.send("application/json", append(b, "]}\n"...))
}

// time is the time of an event, nil if the file has none.
func (r *pageRun) time(event int) *int64 {
	if event < 0 {
		return nil
	}
	if at := r.trace.Events.Time.At(event); at != trace.NoTime {
		return &at
	}
	return nil
}

func (r *pageRun) appendSegment(b []byte, s *timeline.MapSegment, paint func(i int32) uint32) []byte {
	b = append(b, `{"address":`...)
	b = strconv.AppendUint(b, s.Address, 10)
	b = append(b, `,"size_bytes":`...)
	b = strconv.AppendUint(b, s.Size, 10)
	b = append(b, `,"span_bytes":`...)
	b = strconv.AppendUint(b, s.Span, 10)
	b = append(b, `,"stream":`...)
	b = strconv.AppendUint(b, s.Stream, 10)
	b = append(b, `,"pool":`...)
	if s.HasPool {
		b = append(b, '[')
		b = strconv.AppendUint(b, s.Pool.First, 10)
		b = append(b, ',')
		b = strconv.AppendUint(b, s.Pool.Second, 10)
		b = append(b, ']')
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"type":`...)
	if s.Kind == timeline.KindUnknown {
		b = append(b, "null"...)
	} else {
		b = append(b, '"')
		b = append(b, s.Kind.String()...)
		b = append(b, '"')
	}
	b = append(b, `,"expandable":`...)
	b = strconv.AppendBool(b, s.Expandable)
	b = append(b, `,"blocks":[`...)
	for i := range s.Blocks {
		block := &s.Blocks[i]
		requested := uint64(0)
		if block.Life >= 0 {
			if requested = r.lives.Requested(int(block.Life)); requested == 0 {
				requested = block.Size // old files lack it
			}
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '[')
		b = strconv.AppendUint(b, block.Address-s.Address, 10)
		b = append(b, ',')
		b = strconv.AppendUint(b, block.Size, 10)
		b = append(b, ',')
		b = strconv.AppendUint(b, uint64(block.State), 10)
		b = append(b, ',')
		b = strconv.AppendInt(b, int64(block.Life), 10)
		b = append(b, ',')
		b = strconv.AppendUint(b, requested, 10)
		b = append(b, ']')
	}
	b = append(b, `],"colours":[`...)
	for i := range s.Blocks {
		if i > 0 {
			b = append(b, ',')
		}
		colour := uint32(0)
		if life := s.Blocks[i].Life; life >= 0 {
			colour = paint(life)
		}
		b = strconv.AppendUint(b, uint64(colour), 10)
	}
	return append(b, "]}"...)
}

// failedRequest is the request that failed at an event, nil if none did.
func (r *pageRun) failedRequest(event int) *failedRequest {
	if event < 0 || r.trace.Events.Action.At(event) != alloc.ActionOOM {
		return nil
	}
	e := r.trace.Events.At(event)
	out := &failedRequest{Size: e.Size, Stream: e.Stream, Event: event, Free: e.Addr, Segment: e.Size}
	if e.Size < math.MaxInt64 {
		s := settings.Default()
		if r.trace.Settings.Known {
			s = r.trace.Settings.Parsed
		}
		rules := alloc.RulesOf(s, r.trace.Writer.Assumed())
		out.Segment = rules.SegmentSize(rules.Round(e.Size))
	}
	return out
}
