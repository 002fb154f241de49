package explain

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
)

// native weighs the numbers of PyTorch's caching allocator.
func (a *textEvidence) native() {
	a.accountLines()
	there, capped := a.available()
	switch {
	case unbounded(a.segment):
		a.decide(Capacity, Certain, "The request is for more than 1 EB. No device has that: the size was computed wrongly, by an overflow or from a negative number.")
	case a.segment == nil:
		a.unknownRequest(there, capped)
	case a.live == nil || there == nil:
		a.incomplete(there, capped)
	default:
		a.weigh(a.live.Add(*a.request), *there, capped)
	}
}

// decide sets the trigger.
func (a *textEvidence) decide(verdict, confidence, format string, args ...any) {
	a.report.Trigger, a.report.Confidence, a.report.Summary = verdict, confidence, fmt.Sprintf(format, args...)
}

// weigh compares what is needed with what there is.
func (a *textEvidence) weigh(need, there units.Range, capped bool) {
	a.report.Evidence.Available = &there.Mid
	a.refusalLine()
	// Only what is known to be refused by the limit while the device has room
	// is under a cap.
	a.report.Capped = a.mayRefuse() && (a.free == nil || surelyFits(*a.segment, *a.free))
	switch {
	case surelyMore(need, there):
		a.over(need, there, capped)
	case surelyFits(need, there), need.Mid <= there.Mid && a.shouldFit():
		a.within(need, there, capped)
	default:
		a.close(need, there, capped)
	}
}

// close is for sums that the rounding of the numbers, or of the request, leaves
// on either side.
func (a *textEvidence) close(need, there units.Range, capped bool) {
	a.needLine(need.Mid-a.live.Mid, "about", fmt.Sprintf("about the %s available: the numbers are too rounded, or the request too uncertain, to tell which is more", units.Size(there.Mid)))
	summary := fmt.Sprintf("%s failed with %s allocated: together about as much as %s; the numbers are too rounded to tell which is more. %s",
		a.asked(), units.Size(a.live.Mid), a.availableName(there, capped), nearlyText)
	over := a.overVerdict(need, capped)
	if over == External {
		summary += fmt.Sprintf(" PyTorch does not own %s of the device%s.", units.Size(a.external().Mid), a.holdersText())
	}
	if capped {
		a.report.BreakEven = &need.Mid
	}
	if need.Mid > there.Mid {
		gap := need.Mid - there.Mid
		a.report.Evidence.Gap = &gap
		a.decide(over, Open, "%s", summary)
		a.alternative(NearlyFull, "allocated memory and the request are at most %s", units.Size(there.Mid))
	} else {
		a.decide(NearlyFull, Open, "%s", summary)
		a.alternative(over, "allocated memory and the request are more than %s", units.Size(there.Mid))
		a.otherCauses()
	}
	a.memoryFix(need, there, capped)
}

// availableName names what there is.
func (a *textEvidence) availableName(there units.Range, capped bool) string {
	if capped {
		return "the limit of " + units.Size(there.Mid)
	}
	return "the " + units.Size(there.Mid) + " that the device had for PyTorch"
}

// overVerdict returns why there is too little: the memory itself, or those who
// hold some of it.
func (a *textEvidence) overVerdict(need units.Range, capped bool) string {
	if !capped && a.external() != nil && (a.limit == nil || need.Mid <= a.limit.Mid) && withContext(need).Mid <= a.total.Mid {
		return External
	}
	return Capacity
}

// withContext returns a size and what is normal to be outside of PyTorch.
func withContext(r units.Range) units.Range { return r.Add(units.Exactly(normalExternal)) }

// over is for a need of more than there is.
func (a *textEvidence) over(need, there units.Range, capped bool) {
	verdict, confidence := a.overVerdict(need, capped), Certain
	a.needLine(a.request.Low, "at least", fmt.Sprintf("more than the %s available, however the numbers were rounded", units.Size(there.Mid)))
	gap := need.Sub(there)
	a.report.Evidence.Gap = &gap.Mid
	asked := fmt.Sprintf("%s failed with %s allocated: %s, %s more than %s.", a.asked(), units.Size(a.live.Mid), a.together(need), units.Size(gap.Mid), a.availableName(there, capped))
	switch {
	case verdict == External:
		if a.heldByOthers() < gap.High { // nobody else is seen to hold it
			confidence = Likely
		}
		a.decide(External, confidence, "%s Alone on this device of %s it would fit, but PyTorch does not own %s of it%s.",
			asked, units.Size(a.total.Mid), units.Size(a.external().Mid), a.holdersText())
	default:
		confidence, helps := a.settingsHelp(gap, there)
		if !capped && a.total == nil {
			confidence = Likely
			a.alternative(External, "others hold memory of the device that they do not need: the message does not say how large the device is")
		}
		if !capped && a.limit != nil && surelyMore(need, *a.limit) {
			asked += fmt.Sprintf(" It is more than the limit of %s, too.", units.Size(a.limit.Mid))
		}
		a.decide(Capacity, confidence, "%s %s%s.", asked, helps, a.deviceFreeText())
	}
	a.lessFix(gap)
	a.memoryFix(need, there, capped)
}

// deviceFreeText says what the device itself had free.
func (a *textEvidence) deviceFreeText() string {
	if !a.report.Capped || a.free == nil {
		return ""
	}
	return fmt.Sprintf("; the device itself had %s free", units.Size(a.free.Mid))
}

// within is for a need that there is memory for.
func (a *textEvidence) within(need, there units.Range, capped bool) {
	left := there.Sub(need)
	a.needLine(a.request.High, "at most", fmt.Sprintf("within the %s available: there is enough memory for this request; %s would be left",
		units.Size(there.Mid), units.Size(left.Low)))
	asked := fmt.Sprintf("%s failed with %s allocated: %s, which fits within %s", a.asked(), units.Size(a.live.Mid), a.together(need), a.availableName(there, capped))
	switch {
	case a.shouldFit():
		a.unexplainedRefusal(asked)
		return
	case a.othersInTheWay() && a.excess() > a.cached().High:
		a.decide(External, Likely, "%s, if it were in one piece. A new segment of %s would have fitted, too, had others held only the %s that a context takes; they hold %s%s.",
			asked, units.Size(a.segment.Mid), units.Size(normalExternal), units.Size(a.external().Mid), a.holdersText())
		a.alternative(Fragmentation, "others need what they hold: then the %s reserved and free is in pieces that are too small", units.Size(a.cached().Mid))
	case a.inPools(asked):
	case left.Mid < a.page():
		a.nearlyFull(asked, left)
	default:
		a.inPieces(asked, left)
	}
	a.memoryFix(need, there, capped)
}

// mayRefuse reports whether the limit may be what refused a new segment.
func (a *textEvidence) mayRefuse() bool {
	return a.limit != nil && (a.reserved == nil || a.reserved.Add(*a.segment).High > a.limit.Low)
}

// shouldFit reports whether neither the limit nor the device had a reason to
// refuse.
func (a *textEvidence) shouldFit() bool {
	return a.free != nil && surelyFits(*a.segment, *a.free) && !a.mayRefuse()
}

// unexplainedRefusal is for a refusal that the numbers do not explain.
func (a *textEvidence) unexplainedRefusal(asked string) {
	a.decide(Unknown, Open, "%s. The driver refused %s, yet just after that it reports %s free: the numbers of the message do not explain why.",
		asked, units.Size(a.segment.Mid), units.Size(a.free.Mid))
	held := ""
	if out := a.external(); out != nil && out.Low > normalExternal {
		held = fmt.Sprintf(" (PyTorch does not own %s of the device)", units.Size(out.Mid))
	}
	a.alternative(External, "another process, or another thread, held the memory at that moment and gave it back before the message was written%s", held)
	a.alternative(Unknown, "something else limits the process: a quota of the container, of MIG or of MPS, the page file of Windows and WSL, or a driver that cannot hand out the rest")
}

// excess returns what others hold beyond what is normal, at least.
func (a *textEvidence) excess() uint64 {
	out := a.external()
	if out == nil || out.Low <= normalExternal {
		return 0
	}
	return out.Low - normalExternal
}

// othersInTheWay reports whether a new segment would have fitted if others held
// no more than is normal.
func (a *textEvidence) othersInTheWay() bool {
	n := a.excess()
	return n > 0 && a.cached() != nil && !a.mayRefuse() && surelyMore(*a.segment, *a.free) && a.free.Low+n >= a.segment.High
}

// inPools decides for private pools, if they hold enough or if the cache was
// not flushed.
func (a *textEvidence) inPools(asked string) bool {
	if a.unflushed() && a.cached() != nil {
		a.decide(Pools, Likely, "%s. PyTorch did not release its cache before it gave up: no retry is counted, so the request was made inside a CUDA graph capture or use_mem_pool(). %s is cached.",
			asked, units.Size(a.cached().Mid))
		a.alternative(Fragmentation, "releasing the cache would not have freed enough in one piece")
		return true
	}
	if a.pools == nil || a.pools.Low < a.request.High {
		return false
	}
	confidence := Likely
	if a.unused != nil && a.unused.High >= a.request.Low {
		confidence = Open
		a.alternative(Fragmentation, "no free block of the private pools is large enough")
	}
	a.decide(Pools, confidence, "%s. %s is free in private pools (CUDA graphs, MemPools), which serve only their own requests; the message counts it as allocated.",
		asked, units.Size(a.pools.Mid))
	return true
}

// page returns what PyTorch asks of the driver at a time for most requests: a
// segment, or a page of an expandable one.
func (a *textEvidence) page() uint64 {
	if a.settings != nil {
		return a.settings.LargeSegmentSize
	}
	return settings.Default().LargeSegmentSize
}

// nearlyFull is for a request that needs all there is but for less than a page.
// PyTorch can waste that much of every stream and pool whatever its settings,
// so it is not the pieces that are to blame. A text cannot be continued: it does
// not prove that the job is too large either.
func (a *textEvidence) nearlyFull(asked string, left units.Range) {
	a.decide(NearlyFull, Open, "%s, but even packed without a gap only %s would be left. %s", asked, units.Size(left.Mid), nearlyText)
	a.alternative(Capacity, "the job needs more than that afterwards")
	a.otherCauses()
	a.alternative(Fragmentation, "the job never needs more: then only the free pieces are too small")
}

const nearlyText = "Memory is nearly full: make the job need less, as settings gain next to nothing."

// inPieces is fragmentation, with what else the numbers leave possible.
func (a *textEvidence) inPieces(asked string, left units.Range) {
	free := "what is reserved and free"
	if c := a.cached(); c != nil {
		free = fmt.Sprintf("the %s reserved and free", units.Size(c.Mid))
	}
	confidence := Open
	what := "That is fragmentation (tensors lie between the free pieces) or one of the causes below: a snapshot shows which, and whose tensors they are."
	if a.otherCauses() == 0 {
		confidence = Likely
		what = "That is fragmentation: tensors lie between the free pieces. A snapshot shows whose they are."
	}
	a.decide(Fragmentation, confidence, "%s. There was enough memory, but %s could not serve the request, and a new segment of %s did not fit. %s",
		asked, free, units.Size(a.segment.Mid), what)
	a.alternative(Capacity, "the job needs more than the %s that would be left: a text shows one moment, a snapshot shows what follows", units.Size(left.Mid))
}

// otherCauses lists what else may have kept free memory from the request, and
// returns how many of these do not depend on a capture or use_mem_pool.
func (a *textEvidence) otherCauses() int {
	n := 0
	cached := a.cached()
	canServe := cached == nil || cached.High >= a.request.Low // one block of it could be large enough
	if a.othersInTheWay() {
		n++
		a.alternative(External, "others can give back some of the %s that PyTorch does not own, %s more than a context takes", units.Size(a.external().Mid), units.Size(a.excess()))
	}
	if a.hasPools() && (a.pools == nil || a.pools.High > 0) {
		n++
		a.alternative(Pools, "segments of private pools (CUDA graphs, MemPools) hold the free memory: a snapshot shows the pool of each segment")
	}
	if a.hasPools() {
		a.alternative(Pools, "the request was made inside a CUDA graph capture or use_mem_pool(), where PyTorch does not release its cache: a snapshot shows the pool of the request")
	}
	switch {
	case a.pending != nil && a.pending.Mid > 0:
		n++
		a.alternative(Pending, "the %s that was freed but waits for another stream (record_stream) would have served it", units.Size(a.pending.Mid))
	case a.pending == nil && a.hasPools():
		a.alternative(Pending, "it was made there, and memory freed before it waits for another stream (record_stream): a snapshot shows such blocks as pending")
	}
	if canServe {
		n++
		a.alternative(Streams, "a free block of at least %s belongs to another stream: a snapshot shows the stream of each segment", units.Size(a.request.Low))
	} else {
		a.line("%s free in all pools and streams is less than the request: no free block of any stream could have served it", units.Size(cached.Mid))
	}
	if conf := a.settingsInDoubt(canServe); conf != "" {
		n++
		a.alternative(Setting, "%s", conf)
	}
	return n
}

// hasPools reports whether this PyTorch can have private pools: from 1.10 on.
func (a *textEvidence) hasPools() bool {
	if a.Message == nil {
		return true
	}
	_, last := releases(a.Message.Version)
	return last >= 110
}

// settingsInDoubt names the settings that may keep free memory from a request;
// empty if none may.
func (a *textEvidence) settingsInDoubt(canServe bool) string {
	if v := a.splitSize(); v > 0 {
		return fmt.Sprintf("max_split_size_mb, set to %s in the dump, keeps larger free blocks from the request", units.Size(v))
	}
	if a.settings == nil {
		return "max_split_size_mb or roundup_power2_divisions is set and keeps free blocks from the request: give the settings, or a snapshot, which has them"
	}
	for _, off := range switchedOff(*a.settings) {
		if off.name != "expandable_segments" {
			return off.name + " keeps free blocks from the request, or makes it larger: replaying a snapshot without it shows that"
		}
	}
	if canServe {
		return "the release left a free block that is large enough: PyTorch does not search again after it"
	}
	return ""
}

// incomplete is for messages of which a part is missing.
func (a *textEvidence) incomplete(there *units.Range, capped bool) {
	needed := *a.request
	if a.live != nil {
		needed = needed.Add(*a.live)
	}
	bound, name := there, "the limit of"
	if !capped {
		bound, name = a.total, "the device has in all:"
	}
	switch {
	case bound != nil && surelyMore(needed, *bound):
		gap := needed.Sub(*bound)
		a.report.Evidence.Gap, a.report.Evidence.Available = &gap.Mid, &bound.Mid
		confidence, helps := a.settingsHelp(gap, *bound)
		a.line("%s more than %s %s", sizeOf(needed, a.live != nil), name, units.Size(bound.Mid))
		a.decide(Capacity, confidence, "%s failed: %s %s more than %s %s. %s.",
			a.asked(), sizeOf(needed, a.live != nil), units.Size(gap.Mid), name, units.Size(bound.Mid), helps)
		a.lessFix(gap)
	case a.live == nil && a.total == nil && a.limit == nil:
		a.decide(Unknown, Open, "%s failed. The text does not say how much memory was available or who held it: the rest of the message is missing.", a.asked())
		a.alternative(Capacity, "the device has less than %s", units.Size(a.segment.Mid))
	case a.live == nil && a.reserved != nil && a.limit != nil && surelyMore(a.reserved.Add(*a.segment), *a.limit):
		a.rejected()
	case a.contradicted:
		a.decide(Unknown, Open, "%s failed. The numbers of the message contradict each other, so they do not show why. Check that the text is complete and of one message.", a.asked())
	default:
		a.decide(Unknown, Open, "%s failed. The parts of the message that would show why are missing%s.", a.asked(), a.partsText())
	}
}

// rejected is for requests that PyTorch does not pass on because of its limit
// (throw_on_cudamalloc_oom). Its texts do not say what tensors hold.
func (a *textEvidence) rejected() {
	a.line("%s: more than the limit of %s", units.Sum([]units.Term{{Bytes: a.reserved.Mid, What: "reserved"}, {Bytes: a.segment.Mid, What: "for the request"}}, "together"), units.Size(a.limit.Mid))
	a.decide(Unknown, Open, "%s was rejected before the driver was asked: with the %s that PyTorch held it is more than the limit of %s. How much of that tensors used is not said.",
		a.asked(), units.Size(a.reserved.Mid), units.Size(a.limit.Mid))
	room := a.limit.Sub(*a.request)
	a.alternative(Capacity, "tensors used more than %s", units.Size(room.Mid))
	a.alternative(Fragmentation, "tensors used less than %s", units.Size(room.Mid))
}

func sizeOf(r units.Range, withLive bool) string {
	if withLive {
		return "allocated memory and the request, " + units.Size(r.Mid) + ", are"
	}
	return "the request alone, " + units.Size(r.Mid) + ", is"
}

// unknownRequest is for a message without the request: it says from where on
// which trigger holds.
func (a *textEvidence) unknownRequest(there *units.Range, capped bool) {
	switch {
	case a.live != nil && there != nil:
		left := there.Sub(*a.live)
		a.report.Evidence.Available = &there.Mid
		a.line("%s: a larger request cannot be served, whatever the settings", units.Sum([]units.Term{{Bytes: there.Mid, What: "available"}, {Bytes: a.live.Mid, Minus: true, What: "allocated"}}, "left for the request at most"))
		a.decide(Unknown, Open, "A request failed with %s allocated of %s available. The text does not say how large it was.", units.Size(a.live.Mid), units.Size(there.Mid))
		verdict := Capacity
		if !capped && a.total != nil && withContext(*there).Mid < a.total.Mid {
			verdict = External
		}
		a.alternative(verdict, "it was for more than %s", units.Size(left.Mid))
		a.alternative(Fragmentation, "it was for less: then there was enough free memory, but in pieces")
	case a.cached() != nil:
		a.decide(Unknown, Open, "A request failed while %s of PyTorch's reserved memory was not allocated. The text does not say how large the request was or how much memory was available.", units.Size(a.cached().Mid))
		a.alternative(Fragmentation, "it was for less than %s: then there was enough free memory, but in pieces", units.Size(a.cached().Mid))
	case a.Message != nil && strings.Contains(a.Message.Text, "NVML_SUCCESS"):
		a.decide(Unknown, Open, "A request for memory failed. PyTorch could not write its message: it asks NVML who holds the memory, and NVML did not answer, as on a Jetson, a MIG slice or in some containers.")
	default:
		a.decide(Unknown, Open, "A request for memory failed. The text has no numbers that show why: paste the whole message.")
	}
}
