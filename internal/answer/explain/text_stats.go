package explain

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// value returns a number of the dump, nil if it has none.
func (a *textEvidence) value(key string) *units.Range {
	if a.Stats == nil {
		return nil
	}
	if r, ok := a.Stats.Ranges[key]; ok {
		return &r
	}
	if n, ok := a.Stats.Values[key]; ok {
		return exactly(uint64(max(n, 0)))
	}
	return nil
}

// overlap is what two ranges for one number leave, false if they exclude each
// other.
func overlap(x, y units.Range) (units.Range, bool) {
	low, high := max(x.Low, y.Low), min(x.High, y.High)
	if low > high {
		return units.Range{}, false
	}
	return units.Range{Low: low, Mid: min(max(x.Mid, low), high), High: high}, true
}

// fromDump takes the numbers of a dump that is of the moment of the failure:
// they are exact, while those of the message are rounded.
func (a *textEvidence) fromDump() {
	allocated, reserved, active := a.value("allocated_bytes.all.current"), a.value("reserved_bytes.all.current"), a.value("active_bytes.all.current")
	if allocated == nil || reserved == nil || !a.knowsFailure() {
		return
	}
	if a.live == nil && a.reserved == nil && a.Facts != nil && !a.Facts.Late {
		a.live, a.reserved = allocated, reserved // the recorder took it at the failure
	}
	if a.live == nil || a.reserved == nil {
		return
	}
	live, ok1 := overlap(*allocated, *a.live)
	held, ok2 := overlap(*reserved, *a.reserved)
	unused := held.Sub(live)
	if a.pools != nil {
		unused = unused.Sub(*a.pools)
	}
	ok3 := true
	if a.unused != nil {
		unused, ok3 = overlap(unused, *a.unused)
	}
	if !ok1 || !ok2 || !ok3 {
		a.note("the dump of memory_stats() was not made at the failure: only its peaks and counters are used")
		return
	}
	a.sameMoment = true
	a.live, a.reserved, a.unused = &live, &held, &unused
	if active != nil {
		p := active.Sub(*allocated)
		a.pending = &p
	}
}

// unflushed reports whether PyTorch is known not to have flushed its cache
// before a request failed. A flush counts as a retry; requests made while
// memory is routed to a private pool fail without one (spec 3.3).
func (a *textEvidence) unflushed() bool {
	ooms, retries := a.value("num_ooms"), a.value("num_alloc_retries")
	return ooms != nil && retries != nil && ooms.Low > 0 && retries.High == 0
}

// dumpOnly is for a dump without a message.
func (a *textEvidence) dumpOnly() {
	ooms := a.value("num_ooms")
	switch {
	case ooms == nil:
		a.decide(None, Open, "%s Whether a request failed is unknown: there is no count of failed requests (num_ooms).", a.peaksText())
		a.health()
	case ooms.High == 0:
		a.decide(None, Certain, "Nothing failed up to this dump. %s", a.peaksText())
		a.health()
	default:
		a.dumpOfFailure(ooms.Mid)
	}
	e := &a.report.Evidence
	set := func(to **uint64, key string) {
		if v := a.value(key); v != nil {
			*to = &v.Mid
		}
	}
	set(&e.Live, "allocated_bytes.all.current")
	set(&e.Reserved, "reserved_bytes.all.current")
	if active := a.value("active_bytes.all.current"); active != nil && e.Live != nil && e.Reserved != nil {
		pending, free := active.Mid-min(active.Mid, *e.Live), *e.Reserved-min(*e.Reserved, active.Mid)
		e.Pending, e.Free = &pending, &free
	}
}

// dumpOfFailure is for a dump that counts failed requests and does not say
// more of them.
func (a *textEvidence) dumpOfFailure(ooms uint64) {
	requests := "1 request"
	if ooms > 1 {
		requests = units.Count(int64(ooms)) + " requests"
	}
	said := fmt.Sprintf("%s failed before this dump; the sizes are in the error message, not here. %s", requests, a.peaksText())
	if a.unflushed() {
		a.decide(Pools, Open, "%s PyTorch never released its cache before it gave up (no retry is counted): the failing code ran inside a CUDA graph capture or use_mem_pool().", said)
		a.alternative(Capacity, "releasing the cache would not have made room either: the message and its limit show that")
		return
	}
	a.decide(Unknown, Open, "%s", said)
	a.alternative(Capacity, "the request and the peak of %s allocated are more than what is available", sizeText(a.value("allocated_bytes.all.peak")))
	a.alternative(Fragmentation, "they fit within it: the message has both numbers")
}

// peaksText says how much there was at most.
func (a *textEvidence) peaksText() string {
	reserved, allocated := a.value("reserved_bytes.all.peak"), a.value("allocated_bytes.all.peak")
	if reserved == nil || allocated == nil {
		return "The peaks are unknown: the dump has none."
	}
	text := fmt.Sprintf("At most %s was allocated and %s reserved", units.Size(allocated.Mid), units.Size(reserved.Mid))
	if n := a.value("num_alloc_retries"); n != nil && n.High > 0 {
		text += fmt.Sprintf("; the cache was released %s to make room", times(n.Mid))
	}
	return text + "."
}

func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return units.Count(int64(n)) + " times"
}

func sizeText(r *units.Range) string {
	if r == nil {
		return "bytes"
	}
	return units.Size(r.Mid)
}

// health is what a dump says of a run in which nothing failed.
func (a *textEvidence) health() {
	reserved, allocated := a.value("reserved_bytes.all.peak"), a.value("allocated_bytes.all.peak")
	if reserved == nil || allocated == nil {
		return
	}
	h := &Health{PeakReserved: reserved.Mid, PeakAllocated: allocated.Mid, RetriedFor: []Retry{}, Smaller: []Smaller{}}
	h.Fragmentation = timeline.PeakFragmentation(h.PeakReserved, h.PeakAllocated)
	if n := a.value("num_alloc_retries"); n != nil {
		h.Retries = int64(n.Mid)
	}
	now, live := a.value("reserved_bytes.all.current"), a.value("allocated_bytes.all.current")
	if now != nil && live != nil && now.Exact() && now.Low == reserved.Low && now.Low > 0 { // reserved is at its peak now
		part := 1 - float64(live.Mid)/float64(now.Mid)
		h.FragmentationPeak = &part
	}
	if a.limit != nil {
		head := a.limit.Mid - min(a.limit.Mid, reserved.Mid)
		h.Headroom = &head
	}
	a.report.Health = h
}

// dumpLines goes through the numbers of the dump.
func (a *textEvidence) dumpLines() {
	if a.Stats == nil {
		return
	}
	const now = ".all.current"
	source := "dump: "
	if a.Message == nil {
		source = ""
	}
	reserved, allocated, active := a.value("reserved_bytes"+now), a.value("allocated_bytes"+now), a.value("active_bytes"+now)
	difference := func(x *units.Range, nameX string, y *units.Range, nameY, is string) {
		if x != nil && y != nil && x.Mid >= y.Mid {
			a.line("%s%s", source, units.Sum([]units.Term{{Bytes: x.Mid, What: nameX}, {Bytes: y.Mid, Minus: true, What: nameY}}, is))
		}
	}
	if !a.sameMoment { // else it is said already
		difference(reserved, "reserved", allocated, "allocated", "reserved but unallocated")
	}
	if active != nil && allocated != nil && active.Mid > allocated.Mid {
		difference(active, "active", allocated, "allocated", "freed, but waiting for another stream (pending)")
	}
	if split := a.value("inactive_split_bytes" + now); split != nil && split.Mid > 0 {
		a.line("%s%s of the unallocated memory is free beside tensors in the same segments, so it cannot be released", source, units.Size(split.Mid))
	}
	if requested := a.value("requested_bytes" + now); requested != nil && requested.Mid > 0 {
		difference(active, "active", requested, "requested", "lost to rounding")
	}
	difference(a.value("reserved_bytes.all.peak"), "peak reserved", a.value("allocated_bytes.all.peak"), "peak allocated",
		"between the peaks, which need not coincide")
	a.counterLine(source)
	if !a.Stats.Exact {
		a.note("the dump is a table that rounds its numbers down")
	}
}

// counterLine adds what the counters say.
func (a *textEvidence) counterLine(source string) {
	var said []string
	count := func(key, text string) {
		if v := a.value(key); v != nil {
			said = append(said, fmt.Sprintf(text, units.Count(int64(v.Mid))))
		}
	}
	count("num_ooms", "failed requests: %s")
	count("num_alloc_retries", "releases of the cache to make room: %s")
	count("num_device_alloc", "segments allocated by the driver: %s")
	count("num_device_free", "released: %s")
	if n := a.splitSize(); n > 0 {
		said = append(said, "max_split_size_mb is set: "+units.Size(n))
		count("oversize_segments.current", "segments of that size or more: %s")
	}
	if len(said) > 0 {
		a.line("%s%s", source, strings.Join(said, "; "))
	}
}

// splitSize returns the max_split_size_mb that the dump shows, 0 if none. It
// shows what was set when the allocator was made (spec 9.3).
func (a *textEvidence) splitSize() uint64 {
	if a.Stats == nil {
		return 0
	}
	return uint64(max(a.Stats.Values["max_split_size"], 0))
}
