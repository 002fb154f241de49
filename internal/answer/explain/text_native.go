package explain

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/units"
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

// decide sets the verdict.
func (a *textEvidence) decide(verdict, confidence, format string, args ...any) {
	a.report.Verdict, a.report.Confidence, a.report.Summary = verdict, confidence, fmt.Sprintf(format, args...)
}

// weigh compares what is needed with what there is.
func (a *textEvidence) weigh(need, there units.Range, capped bool) {
	a.report.Evidence.Available = &there.Mid
	a.refusalLine()
	// Only what is known to be refused by the limit while the device has room
	// is under a cap.
	a.report.UnderCap = a.mayRefuse() && (a.free == nil || surelyFits(*a.segment, *a.free))
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
	a.needLine(need.Mid-a.live.Mid, "about", fmt.Sprintf("about what there is, %s: the numbers are too rounded, or the request too uncertain, to tell which is more", units.Size(there.Mid)))
	summary := fmt.Sprintf("%s failed with %s live: together about as much as %s. Whether memory was too small or in pieces that are too small, these numbers do not tell.",
		a.asked(), units.Size(a.live.Mid), a.availableName(there, capped))
	over := a.overVerdict(need, capped)
	if over == External {
		summary += fmt.Sprintf(" %s of the device do not belong to PyTorch%s.", units.Size(a.external().Mid), a.holdersText())
	}
	if capped {
		a.report.BreakEven = &need.Mid
	}
	if need.Mid > there.Mid {
		gap := need.Mid - there.Mid
		a.report.Evidence.Gap = &gap
		a.decide(over, Open, "%s", summary)
		a.alternative(Fragmentation, "live memory and the request are at most %s", units.Size(there.Mid))
	} else {
		a.decide(Fragmentation, Open, "%s", summary)
		a.alternative(over, "live memory and the request are more than %s", units.Size(there.Mid))
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
	a.needLine(a.request.Low, "at least", fmt.Sprintf("more than what there is, %s, however the numbers were rounded", units.Size(there.Mid)))
	gap := need.Sub(there)
	a.report.Evidence.Gap = &gap.Mid
	asked := fmt.Sprintf("%s failed with %s live: %s, %s more than %s.", a.asked(), units.Size(a.live.Mid), a.together(need), units.Size(gap.Mid), a.availableName(there, capped))
	switch {
	case verdict == External:
		if a.heldByOthers() < gap.High { // nobody else is seen to hold it
			confidence = Likely
		}
		a.decide(External, confidence, "%s Alone on this device of %s it would fit: %s of it do not belong to PyTorch%s.",
			asked, units.Size(a.total.Mid), units.Size(a.external().Mid), a.holdersText())
	default:
		confidence, helps := a.settingsHelp(gap, there)
		if !capped && a.total == nil {
			confidence = Likely
			a.alternative(External, "others hold memory of the device that they need not: the message does not say how large it is")
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
	if !a.report.UnderCap || a.free == nil {
		return ""
	}
	return fmt.Sprintf("; the device itself had %s free", units.Size(a.free.Mid))
}

// within is for a need that there is memory for.
func (a *textEvidence) within(need, there units.Range, capped bool) {
	left := there.Sub(need)
	a.needLine(a.request.High, "at most", fmt.Sprintf("no more than what there is, %s: memory is not too small for this request; %s would be left",
		units.Size(there.Mid), units.Size(left.Low)))
	asked := fmt.Sprintf("%s failed with %s live: %s, which fit into %s", a.asked(), units.Size(a.live.Mid), a.together(need), a.availableName(there, capped))
	switch {
	case a.shouldFit():
		a.unexplainedRefusal(asked)
		return
	case a.othersInTheWay() && a.excess() > a.cached().High:
		a.decide(External, Likely, "%s, if it were in one piece. A new segment of %s would have fitted, too, if what PyTorch does not own were no more than the %s that a context takes: it is %s%s.",
			asked, units.Size(a.segment.Mid), units.Size(normalExternal), units.Size(a.external().Mid), a.holdersText())
		a.alternative(Fragmentation, "what others hold is needed: then the %s that are reserved and free are in pieces that are too small", units.Size(a.cached().Mid))
	case a.inPools(asked):
	default:
		a.inPieces(asked)
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
	a.decide(Unknown, Open, "%s. And the driver, asked just after it refused %s, says that %s are free: the numbers of the message do not explain why it refused.",
		asked, units.Size(a.segment.Mid), units.Size(a.free.Mid))
	held := ""
	if out := a.external(); out != nil && out.Low > normalExternal {
		held = fmt.Sprintf(" (%s of the device do not belong to PyTorch)", units.Size(out.Mid))
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
		a.decide(Pools, Likely, "%s. PyTorch did not flush its cache before it gave up: no retry is counted, so the request was made inside a CUDA graph capture or use_mem_pool(). %s are cached.",
			asked, units.Size(a.cached().Mid))
		a.alternative(Fragmentation, "a flush would not have released enough in one piece")
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
	a.decide(Pools, confidence, "%s. %s are free in private pools (CUDA graphs, MemPools), where only their own requests are served; the message counts them as allocated.",
		asked, units.Size(a.pools.Mid))
	return true
}

// inPieces is fragmentation, with what else the numbers leave possible.
func (a *textEvidence) inPieces(asked string) {
	free := "what is reserved and free"
	if c := a.cached(); c != nil {
		free = fmt.Sprintf("the %s that are reserved and free", units.Size(c.Mid))
	}
	confidence := Open
	what := "That is fragmentation (live tensors stand between the free pieces) or one of the causes below: a snapshot tells which, and whose tensors they are."
	if a.otherCauses() == 0 {
		confidence = Likely
		what = "That is fragmentation: live tensors stand between the free pieces. A snapshot shows whose they are."
	}
	a.decide(Fragmentation, confidence, "%s. So memory was not too small, but %s could not be used for it, and a new segment of %s did not fit. %s",
		asked, free, units.Size(a.segment.Mid), what)
}

// otherCauses lists what else may have kept free memory from the request, and
// returns how many of these do not depend on a capture or use_mem_pool.
func (a *textEvidence) otherCauses() int {
	n := 0
	cached := a.cached()
	canServe := cached == nil || cached.High >= a.request.Low // one block of it could be large enough
	if a.othersInTheWay() {
		n++
		a.alternative(External, "the %s that PyTorch does not own, %s more than a context takes, can be had back", units.Size(a.external().Mid), units.Size(a.excess()))
	}
	if a.hasPools() && (a.pools == nil || a.pools.High > 0) {
		n++
		a.alternative(Pools, "segments of private pools (CUDA graphs, MemPools) hold the free memory: a snapshot shows the pool of each segment")
	}
	if a.hasPools() {
		a.alternative(Pools, "the request was made inside a CUDA graph capture or use_mem_pool(), where PyTorch does not flush its cache: a snapshot shows the pool of the request")
	}
	switch {
	case a.pending != nil && a.pending.Mid > 0:
		n++
		a.alternative(Pending, "the %s that were freed but wait for another stream (record_stream) would have served it", units.Size(a.pending.Mid))
	case a.pending == nil && a.hasPools():
		a.alternative(Pending, "it was made there, and memory that was freed before waits for another stream (record_stream): a snapshot shows such blocks as pending")
	}
	if canServe {
		n++
		a.alternative(Streams, "a free block of at least %s belongs to another stream: a snapshot shows the stream of each segment", units.Size(a.request.Low))
	} else {
		a.line("%s free in all pools and streams are less than the request: no free block could have served it, of whatever stream", units.Size(cached.Mid))
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
		return fmt.Sprintf("max_split_size_mb, which the dump says is set (%s), keeps larger free blocks from the request", units.Size(v))
	}
	if a.settings == nil {
		return "max_split_size_mb or roundup_power2_divisions is set and keeps free blocks from the request: give --settings, or a snapshot, which has them"
	}
	for _, off := range switchedOff(*a.settings) {
		if off.name != "expandable_segments" {
			return off.name + " keeps free blocks from the request, or makes it larger: a replay of a snapshot without it tells"
		}
	}
	if canServe {
		return "the flush left a free block that is large enough: PyTorch does not search again after it"
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
		a.decide(Unknown, Open, "%s failed. The text does not say how much memory there was, nor who held it: the rest of the message is missing.", a.asked())
		a.alternative(Capacity, "the device has less than %s", units.Size(a.segment.Mid))
	case a.contradicted:
		a.decide(Unknown, Open, "%s failed. The numbers of the message contradict each other, so they do not tell why. Check that the text is whole, and of one message.", a.asked())
	default:
		a.decide(Unknown, Open, "%s failed. Parts of the message that would tell why are missing%s.", a.asked(), a.partsText())
	}
}

func sizeOf(r units.Range, withLive bool) string {
	if withLive {
		return "live memory and the request, " + units.Size(r.Mid) + ", are"
	}
	return "the request alone, " + units.Size(r.Mid) + ", is"
}

// unknownRequest is for a message without the request: it says from where on
// which verdict holds.
func (a *textEvidence) unknownRequest(there *units.Range, capped bool) {
	switch {
	case a.live != nil && there != nil:
		left := there.Sub(*a.live)
		a.report.Evidence.Available = &there.Mid
		a.line("%s: a larger request cannot be served, whatever the settings", units.Sum([]units.Term{{Bytes: there.Mid, What: "that there are"}, {Bytes: a.live.Mid, Minus: true, What: "live"}}, "at most for the request"))
		a.decide(Unknown, Open, "A request failed with %s live, of %s that there were. How large it was, the text does not say.", units.Size(a.live.Mid), units.Size(there.Mid))
		verdict := Capacity
		if !capped && a.total != nil && withContext(*there).Mid < a.total.Mid {
			verdict = External
		}
		a.alternative(verdict, "it was for more than %s", units.Size(left.Mid))
		a.alternative(Fragmentation, "it was for less: then the free memory was there, but in pieces")
	case a.cached() != nil:
		a.decide(Unknown, Open, "A request failed while %s of what PyTorch had reserved was in no tensor. How large it was and how much there was in all, the text does not say.", units.Size(a.cached().Mid))
		a.alternative(Fragmentation, "it was for less than %s: then the free memory was there, but in pieces", units.Size(a.cached().Mid))
	default:
		a.decide(Unknown, Open, "A request for memory failed. The text has no numbers to tell why: paste the whole message.")
	}
}
