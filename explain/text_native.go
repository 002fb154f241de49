package explain

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// native weighs the numbers of PyTorch's caching allocator.
func (a *account) native() {
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
func (a *account) decide(verdict, confidence, format string, args ...any) {
	a.r.Verdict, a.r.Confidence, a.r.Summary = verdict, confidence, fmt.Sprintf(format, args...)
}

// weigh compares what is needed with what there is.
func (a *account) weigh(need, there units.Range, capped bool) {
	a.r.Evidence.Available = &there.Mid
	a.refusalLine()
	// Only what is known to be refused by the limit while the device has room
	// is under a cap.
	a.r.UnderCap = a.mayRefuse() && (a.free == nil || surelyFits(*a.segment, *a.free))
	switch {
	case surelyMore(need, there):
		a.over(need, there, capped, Certain)
	case surelyFits(need, there):
		a.within(need, there, capped, "")
	default:
		a.close(need, there, capped)
	}
}

// close is for sums that the rounding of the numbers, or of the request, leaves
// on either side.
func (a *account) close(need, there units.Range, capped bool) {
	a.needLine(need.Mid-a.live.Mid, "about", fmt.Sprintf("about what there is, %s: the numbers are too rounded, or the request too uncertain, to tell which is more", units.Size(there.Mid)))
	if capped {
		a.r.BreakEven = &need.Mid
	}
	if need.Mid > there.Mid {
		a.over(need, there, capped, Open)
		a.alternative(Fragmentation, "live memory and the request are at most %s", units.Size(there.Mid))
		return
	}
	a.within(need, there, capped, Open)
	first := Alternative{a.overVerdict(need, capped), fmt.Sprintf("if live memory and the request are more than %s", units.Size(there.Mid))}
	a.r.Alternatives = append([]Alternative{first}, a.r.Alternatives...)
}

// overVerdict is why there is too little: the memory itself, or those who hold
// some of it.
func (a *account) overVerdict(need units.Range, capped bool) string {
	if !capped && a.total != nil && (a.limit == nil || need.Mid <= a.limit.Mid) && need.Mid+normalOutside <= a.total.Mid {
		return Outside
	}
	return Capacity
}

// over is for a need of more than there is.
func (a *account) over(need, there units.Range, capped bool, confidence string) {
	verdict := a.overVerdict(need, capped)
	if confidence == Certain {
		a.needLine(a.request.Low, "at least", fmt.Sprintf("more than what there is, %s", units.Size(there.Mid)))
		switch {
		case capped:
		case a.total == nil:
			confidence = Likely
			a.alternative(Outside, "others hold memory of the device that they need not: the message does not say how large it is")
		case verdict == Outside && need.High+normalOutside > a.total.Low, verdict == Capacity && need.Low+normalOutside <= a.total.High && a.outside() != nil && a.outside().High > normalOutside:
			confidence = Likely
		}
	}
	gap := need.Sub(there)
	a.r.Evidence.Gap = &gap.Mid
	asked := fmt.Sprintf("%s failed with %s live: %s, %s more than", a.asked(), units.Size(a.live.Mid), a.together(need), units.Size(gap.Mid))
	switch {
	case verdict == Outside:
		a.decide(Outside, confidence, "%s the %s that the device had for PyTorch. Alone on this device of %s it would fit: %s of it do not belong to PyTorch%s.",
			asked, units.Size(there.Mid), units.Size(a.total.Mid), units.Size(a.outside().Mid), a.holdersText())
	case capped:
		a.decide(Capacity, confidence, "%s the limit of %s. No allocator setting helps%s.", asked, units.Size(there.Mid), a.roomText())
	default:
		a.decide(Capacity, confidence, "%s the %s that the device had for PyTorch. No allocator setting helps.", asked, units.Size(there.Mid))
	}
	if verdict == Capacity {
		a.roundedUp()
	}
	a.lessFix(gap)
	a.memoryFix(need, there, capped)
}

// roundedUp is about the one setting that makes tensors take more than they
// need.
func (a *account) roundedUp() {
	const name = "roundup_power2_divisions"
	if a.settings == nil {
		a.note("the exception is %s, which makes tensors take more than they need: if it is on, they would take less without it", name)
		return
	}
	for _, off := range switchedOff(*a.settings) {
		if off.name == name {
			a.r.Confidence = Likely
			a.alternative(Setting, "%s, which is on, makes up the difference: a replay of a snapshot without it tells", name)
		}
	}
}

// roomText tells of a device that had room.
func (a *account) roomText() string {
	if !a.r.UnderCap || a.free == nil {
		return ""
	}
	return fmt.Sprintf("; the device itself had %s free", units.Size(a.free.Mid))
}

// within is for a need that there is memory for; confidence is Open if that is
// not sure, else empty.
func (a *account) within(need, there units.Range, capped bool, confidence string) {
	left := there.Sub(need)
	if confidence == "" {
		a.needLine(a.request.High, "at most", fmt.Sprintf("no more than what there is, %s: memory is not too small for this request; %s would be left",
			units.Size(there.Mid), units.Size(left.Low)))
	}
	room := "the " + units.Size(there.Mid) + " that the device had for PyTorch"
	if capped {
		room = "the limit of " + units.Size(there.Mid)
	}
	asked := fmt.Sprintf("%s failed with %s live: %s, which fit into %s", a.asked(), units.Size(a.live.Mid), a.together(need), room)
	switch {
	case a.hadRoom():
		a.driverSaysRoom(asked)
		return
	case confidence == "" && a.othersInTheWay():
		a.decide(Outside, Likely, "%s, if it were in one piece. A new segment of %s would have fitted, too, if what PyTorch does not own were no more than the %s that a CUDA context takes: it is %s%s.",
			asked, units.Size(a.segment.Mid), units.Size(normalOutside), units.Size(a.outside().Mid), a.holdersText())
		a.alternative(Fragmentation, "what others hold is needed: then the %s that are reserved and free are in pieces that are too small", units.Size(a.cached().Mid))
	case confidence == "" && a.inPools(asked):
	default:
		a.inPieces(asked, confidence)
	}
	a.memoryFix(need, there, capped)
}

// mayRefuse tells whether the limit may be what refused a new segment.
func (a *account) mayRefuse() bool {
	return a.limit != nil && (a.reserved == nil || a.reserved.Add(*a.segment).High > a.limit.Low)
}

// hadRoom tells whether neither the limit nor the device had a reason to refuse.
func (a *account) hadRoom() bool {
	return a.free != nil && surelyFits(*a.segment, *a.free) && !a.mayRefuse()
}

// driverSaysRoom is for a refusal that the numbers do not explain.
func (a *account) driverSaysRoom(asked string) {
	a.decide(Unknown, Open, "%s. And the driver, asked just after it refused %s, says that %s are free: the numbers of the message do not explain why it refused.",
		asked, units.Size(a.segment.Mid), units.Size(a.free.Mid))
	a.alternative(Outside, "another process, or another thread, held the memory at that moment and gave it back before the message was written")
	a.alternative(Unknown, "something else limits the process: a quota of the container or of MIG or MPS, the page file of Windows and WSL, or the driver")
}

// othersInTheWay tells whether a new segment would have fitted if others held no
// more than is normal.
func (a *account) othersInTheWay() bool {
	out := a.outside()
	if out == nil || out.Low <= normalOutside || a.mayRefuse() || !surelyMore(*a.segment, *a.free) {
		return false
	}
	return a.free.Low+out.Low-normalOutside >= a.segment.High
}

// inPools decides for private pools, if they hold enough or if the cache was
// not flushed.
func (a *account) inPools(asked string) bool {
	if flushed, known := a.flushed(); known && !flushed {
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
func (a *account) inPieces(asked, confidence string) {
	free := "what is reserved and free"
	if c := a.cached(); c != nil {
		free = fmt.Sprintf("the %s that are reserved and free", units.Size(c.Mid))
	}
	left := a.otherCauses()
	switch {
	case confidence != "":
	case left == 0:
		confidence = Likely
	default:
		confidence = Open
	}
	what := "That is fragmentation (live tensors stand between the free pieces) or one of the causes below: a snapshot tells which, and whose tensors they are."
	if confidence == Likely {
		what = "That is fragmentation: live tensors stand between the free pieces. A snapshot shows whose they are."
	}
	a.decide(Fragmentation, confidence, "%s. So memory was not too small, but %s could not be used for it, and a new segment of %s did not fit. %s",
		asked, free, units.Size(a.segment.Mid), what)
}

// otherCauses lists what else may have kept free memory from the request, and
// returns how many of these do not depend on a capture or use_mem_pool.
func (a *account) otherCauses() int {
	n := 0
	cached := a.cached()
	canServe := cached == nil || cached.High >= a.request.Low // one block of it could be large enough
	if a.pools == nil || a.pools.High > 0 {
		n++
		a.alternative(Pools, "segments of private pools (CUDA graphs, MemPools) hold the free memory: a snapshot shows the pool of each segment")
	}
	a.alternative(Pools, "the request was made inside a CUDA graph capture or use_mem_pool(), where PyTorch does not flush its cache: a snapshot shows the pool of the request")
	switch {
	case a.pending == nil:
		a.alternative(Pending, "there, memory that was freed waits for another stream (record_stream): a snapshot shows such blocks as pending")
	case a.pending.High >= smallestSize:
		n++
		a.alternative(Pending, "the %s that were freed but wait for another stream (record_stream) would have served it", units.Size(a.pending.Mid))
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

// settingsInDoubt names the settings that may keep free memory from a request;
// empty if none may.
func (a *account) settingsInDoubt(canServe bool) string {
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
func (a *account) incomplete(there *units.Range, capped bool) {
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
		a.r.Evidence.Gap, a.r.Evidence.Available = &gap.Mid, &bound.Mid
		a.line("%s is more than %s %s", sizeOf(needed, a.live != nil), name, units.Size(bound.Mid))
		a.decide(Capacity, Certain, "%s failed: %s, %s more than %s %s. No allocator setting helps.", a.asked(), sizeOf(needed, a.live != nil), units.Size(gap.Mid), name, units.Size(bound.Mid))
		a.lessFix(gap)
	case a.live == nil && a.total == nil && a.limit == nil:
		a.decide(Unknown, Open, "%s failed. The text does not say how much memory there was, nor who held it: the rest of the message is missing.", a.asked())
		a.alternative(Capacity, "the device has less than %s", units.Size(a.segment.Mid))
	default:
		a.decide(Unknown, Open, "%s failed. Parts of the message that would tell why are missing%s.", a.asked(), a.partsText())
	}
}

func sizeOf(r units.Range, withLive bool) string {
	if withLive {
		return "live memory and the request, " + units.Size(r.Mid) + ","
	}
	return "the request alone, " + units.Size(r.Mid) + ","
}

// unknownRequest is for a message without the request: it says from where on
// which verdict holds.
func (a *account) unknownRequest(there *units.Range, capped bool) {
	switch {
	case a.live != nil && there != nil:
		left := there.Sub(*a.live)
		a.r.Evidence.Available = &there.Mid
		a.line("%s that there are - %s live = %s: a larger request could not be served, whatever the settings", units.Size(there.Mid), units.Size(a.live.Mid), units.Size(left.Mid))
		a.decide(Unknown, Open, "A request failed with %s live, of %s that there were. How large it was, the text does not say.", units.Size(a.live.Mid), units.Size(there.Mid))
		verdict := Capacity
		if !capped && a.total != nil && there.Mid+normalOutside < a.total.Mid {
			verdict = Outside
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
