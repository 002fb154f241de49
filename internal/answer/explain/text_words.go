package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot/message"
	"github.com/ashlar-mem/ashlar/trace"
)

// loose reports whether the request may be much smaller than its segment, which
// it then shares with others.
func (a *textEvidence) loose() bool {
	return a.request.High-a.request.Low > alloc.SegmentUnit && a.segment.Exact()
}

// asked describes the request that failed.
func (a *textEvidence) asked() string {
	switch r, s := a.request, a.segment; {
	case r.Exact():
		return "A request for " + units.Size(r.Mid)
	case r.High < s.Low:
		return fmt.Sprintf("A request for at most %s (%s was requested from the driver)", units.Size(r.High), units.Size(s.Mid))
	case a.loose():
		return "A request for at most " + units.Size(r.High)
	default:
		return "A request for " + units.Size(s.Mid)
	}
}

// together returns what is live and the request.
func (a *textEvidence) together(need units.Range) string {
	if a.loose() || a.request.High < a.segment.Low {
		return "together at most " + units.Size(need.High)
	}
	return "together " + units.Size(need.Mid)
}

// needLine adds the request to what is live. A request that nearly fills its
// segment is shown as the message has it.
func (a *textEvidence) needLine(request uint64, about, compared string) {
	what := "for the request"
	switch {
	case a.request.Exact():
		request = a.request.Mid
	case a.loose() || a.request.High < a.segment.Low:
		what += " (" + about + ")"
	default:
		request = a.segment.Mid
	}
	a.line("%s, %s", units.Sum([]units.Term{{Bytes: a.live.Mid, What: "allocated"}, {Bytes: request, What: what}}, "needed"), compared)
}

// accountLines goes through what was reserved and who held the rest.
func (a *textEvidence) accountLines() {
	if p := a.pools; p != nil && p.High > 0 && a.live != nil {
		a.line("%s", units.Sum([]units.Term{
			{Bytes: a.live.Mid + p.Mid, What: `"allocated" in the message`}, {Bytes: p.Mid, Minus: true, What: "of that free in private pools"},
		}, "really allocated"))
	}
	switch {
	case a.live == nil || a.unused == nil || a.reserved == nil:
	case a.Message != nil && a.Message.ReservedBytes != nil:
		a.line("%s", units.Sum([]units.Term{{Bytes: a.reserved.Mid, What: "reserved"}, {Bytes: a.live.Mid, Minus: true, What: "allocated"}}, "reserved but unallocated"))
	default:
		live := a.live.Mid
		if a.pools != nil {
			live += a.pools.Mid
		}
		a.line("%s", units.Sum([]units.Term{{Bytes: live, What: "allocated"}, {Bytes: a.unused.Mid, What: "reserved but unallocated"}}, "reserved by PyTorch"))
	}
	a.externalLines()
	there, capped := a.available()
	switch {
	case there == nil:
	case capped:
		a.line("%s is available to PyTorch: the limit%s", units.Size(there.Mid), a.freeText())
	case a.total != nil && a.reserved.Low > a.total.High:
		a.line("%s reserved on a device of %s: the driver adds host memory (on Windows: shared GPU memory)", units.Size(a.reserved.Mid), units.Size(a.total.Mid))
	default:
		a.line("%s", units.Sum([]units.Term{{Bytes: a.reserved.Mid, What: "reserved"}, {Bytes: a.free.Mid, What: "free on the device"}}, "available to PyTorch"))
	}
}

func (a *textEvidence) freeText() string {
	if a.free == nil {
		return ""
	}
	return fmt.Sprintf("; the device has %s free", units.Size(a.free.Mid))
}

// externalLines accounts for what PyTorch does not own.
func (a *textEvidence) externalLines() {
	if out := a.external(); out != nil {
		a.line("%s", units.Sum([]units.Term{
			{Bytes: a.total.Mid, What: "on the device"}, {Bytes: a.free.Mid, Minus: true, What: "free"}, {Bytes: a.reserved.Mid, Minus: true, What: "reserved by PyTorch"},
		}, "not owned by PyTorch"))
	}
	own, others := a.processes()
	if len(others) > 0 {
		a.line("other processes hold %s: %s", units.Size(total(others).Mid), pids(others))
	}
	if own == nil || a.reserved == nil || own.Bytes.High < a.reserved.Low {
		return
	}
	name := "in this process"
	if !own.Self {
		name = fmt.Sprintf("in process %d (this one: no other holds as much as PyTorch reserved)", own.PID)
	}
	a.line("%s", units.Sum([]units.Term{{Bytes: own.Bytes.Mid, What: name}, {Bytes: min(own.Bytes.Mid, a.reserved.Mid), Minus: true, What: "reserved by PyTorch"}},
		"for its CUDA context, NCCL, cuBLAS and other libraries"))
}

// processes tells this process from the others. A process in a container does
// not know its own number: then it is the only one that holds as much as PyTorch
// reserved, if there is such a one.
func (a *textEvidence) processes() (own *message.Process, others []message.Process) {
	if a.Message == nil {
		return nil, nil
	}
	all := a.Message.Processes
	for i := range all {
		if all[i].Self {
			own = &all[i]
		}
	}
	if own == nil && a.reserved != nil {
		for i := range all {
			if all[i].Bytes.High < a.reserved.Low {
				continue
			}
			if own != nil { // two could be
				own = nil
				break
			}
			own = &all[i]
		}
	}
	for i := range all {
		if &all[i] != own {
			others = append(others, all[i])
		}
	}
	slices.SortStableFunc(others, func(x, y message.Process) int { return cmp.Compare(y.Bytes.Mid, x.Bytes.Mid) })
	return own, others
}

// total returns what some processes hold.
func total(all []message.Process) units.Range {
	var sum units.Range
	for _, p := range all {
		sum = sum.Add(p.Bytes)
	}
	return sum
}

func pids(all []message.Process) string {
	const shown = 4
	var names []string
	for _, p := range all[:min(shown, len(all))] {
		names = append(names, fmt.Sprintf("process %d %s", p.PID, units.Size(p.Bytes.Mid)))
	}
	if more := len(all) - shown; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// holdersText says who holds what PyTorch does not own.
func (a *textEvidence) holdersText() string {
	own, others := a.processes()
	switch len(others) {
	case 0:
	case 1:
		return fmt.Sprintf("; process %d holds %s of that", others[0].PID, units.Size(others[0].Bytes.Mid))
	default:
		return fmt.Sprintf("; %d other processes hold %s of that", len(others), units.Size(total(others).Mid))
	}
	if own != nil {
		return ": no other process is listed, so this one's context and libraries hold it (NCCL, cuBLAS, CUDA graphs)"
	}
	return ": contexts, libraries such as NCCL, or other processes" + a.lister()
}

// lister returns the tool that lists the processes on a device.
func (a *textEvidence) lister() string {
	switch answer.PlatformOf(a.Message) {
	case apple, "MUSA":
		return ""
	}
	return "; " + allocatorOf(a.Message).Lister() + " lists them"
}

// heldByOthers returns what other processes are listed with.
func (a *textEvidence) heldByOthers() uint64 {
	_, others := a.processes()
	return total(others).Low
}

// refusalLine says what refused a new segment.
func (a *textEvidence) refusalLine() {
	if a.limit != nil && a.reserved != nil && a.mayRefuse() {
		how := "refused"
		if !surelyMore(a.reserved.Add(*a.segment), *a.limit) {
			how = "may have been refused: too close to tell from rounded numbers"
		}
		a.line("%s, the limit is %s: %s", units.Sum([]units.Term{
			{Bytes: a.reserved.Mid, What: "reserved"}, {Bytes: a.segment.Mid, What: "for a new segment"},
		}, "in all"), units.Size(a.limit.Mid), how)
		return
	}
	if a.free == nil {
		return
	}
	switch {
	case surelyMore(*a.segment, *a.free):
		a.line("the driver has %s free and was asked for %s: refused", units.Size(a.free.Mid), units.Size(a.segment.Mid))
	case surelyFits(*a.segment, *a.free):
		a.line("the driver has %s free and was asked for %s: by these numbers it fits", units.Size(a.free.Mid), units.Size(a.segment.Mid))
	}
}

// lessFix says how much less would do.
func (a *textEvidence) lessFix(gap units.Range) {
	a.report.Fixes = append(a.report.Fixes, Fix{
		Kind: FixCode, Bytes: &gap.High,
		Detail: fmt.Sprintf("allocate or request %s less%s: less than that cannot help, and this much is enough only if it is free in one piece",
			units.SizeUp(gap.High), rounded(gap)),
	})
}

// memoryFix says how much more memory the request needs: at least what is
// missing, and surely no more than a new segment.
func (a *textEvidence) memoryFix(need, there units.Range, capped bool) {
	if a.reserved == nil || a.total != nil && a.reserved.Low > a.total.High {
		return
	}
	enough := a.reserved.Add(*a.segment)
	if enough.High <= there.Low {
		return
	}
	more := units.Range{Low: need.Low - min(need.Low, there.High), High: enough.High - there.Low}
	yes := true
	f := Fix{Kind: FixMemory, PassesFailure: &yes, Bytes: &more.High}
	switch {
	case capped:
		f.Detail = fmt.Sprintf("a limit of %s, %s more: then a new segment fits and this request is served; what follows is unknown", units.SizeUp(enough.High), units.SizeUp(more.High))
	default:
		f.Detail = fmt.Sprintf("%s more on the device: then a new segment fits and this request is served; what follows is unknown", units.SizeUp(more.High))
		if out := a.external(); out != nil && out.Low > normalExternal {
			f.Detail += fmt.Sprintf(". Others hold %s of the device", units.Size(out.Mid))
		}
	}
	if more.Low > 0 && units.Size(more.Low) != units.Size(more.High) {
		f.Detail += fmt.Sprintf(". With these settings less than about %s more does not help", units.Size(more.Low))
	}
	a.report.Fixes = append(a.report.Fixes, f)
}

// rounded says how far a number may be off.
func rounded(r units.Range) string {
	if low := units.Size(r.Low); low != units.Size(r.High) {
		return fmt.Sprintf(" (possibly only %s: the numbers are rounded)", low)
	}
	return ""
}

// partsText names what is missing of a message.
func (a *textEvidence) partsText() string {
	var names []string
	for _, p := range []struct {
		r    *units.Range
		name string
	}{{a.live, "the allocated bytes"}, {a.reserved, "the reserved bytes"}, {a.free, "the free memory"}, {a.total, "the size of the device"}} {
		if p.r == nil {
			names = append(names, p.name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ": " + strings.Join(names, ", ")
}

// advice looks at what the message advises.
func (a *textEvidence) advice() {
	if a.Message == nil || a.Message.Advice == "" {
		return
	}
	var name string
	var on bool
	switch text := a.Message.Advice; {
	case strings.Contains(text, "expandable_segments"):
		name, on = "expandable_segments:True", a.settings != nil && a.settings.ExpandableSegments
	case strings.Contains(text, "max_split_size_mb"):
		name, on = "max_split_size_mb", a.settings != nil && len(switchedOff(*a.settings)) > 0 && switchedOff(*a.settings)[0].name == "max_split_size_mb"
	default:
		return
	}
	said := "the message advises " + name
	if on {
		said += ", which is already on"
	}
	switch a.report.Trigger {
	case Capacity:
		if !on && a.report.Confidence != Certain && strings.HasPrefix(name, "expandable") {
			a.note("%s: it does not make tensors smaller; it helps only as far as it can split off unused rests of blocks", said)
			return
		}
		a.note("%s: it cannot help here, because it does not make tensors smaller", said)
	case External:
		a.note("%s: it does not release what others hold", said)
	case Unknown:
		if on {
			a.note("%s", said)
		}
	default:
		switch {
		case on:
			a.note("%s, so it is not what is missing", said)
		case name == "max_split_size_mb":
			a.note("%s, without a size: ashlar tune, run on a snapshot, finds one that helps, if any does", said)
		default:
			a.note("%s, which is meant for this case; ashlar whatif, run on a snapshot, shows whether it is enough", said)
		}
	}
}

// record gives the lines with which the next run shows more.
func (a *textEvidence) record() {
	if o := a.Message; o != nil {
		switch platform := answer.PlatformOf(o); {
		case o.Backend == message.CUDAMallocAsync:
			a.note("the backend cudaMallocAsync keeps no history: to record a snapshot, leave backend:cudaMallocAsync out of PYTORCH_CUDA_ALLOC_CONF")
		case platform == apple || platform == "MUSA":
			return // they keep no history
		case platform == trace.XPU:
			a.report.Record = otherRecord("xpu", "needs PyTorch 2.11 or later")
			return
		case platform == trace.NPU:
			a.report.Record = otherRecord("npu", "torch_npu's own")
			return
		}
	}
	a.report.Record = append(a.report.Record,
		"import ashlar                # python/ashlar.py, beside the job; needs PyTorch 2.1 or later",
		"ashlar.record()              # writes ashlar-RANK-PID.pickle when memory runs out",
		"# or, with PyTorch alone:",
		"torch.cuda.memory._record_memory_history(max_entries=500_000)   # before the model is made",
		"try:",
		"    main()",
		"except torch.cuda.OutOfMemoryError:",
		"    torch.cuda.memory._dump_snapshot(\"oom.pickle\")",
		"    raise",
	)
}

// otherRecord are the lines that record on another device.
func otherRecord(module, note string) []string {
	return []string{
		"torch." + module + ".memory._record_memory_history(max_entries=500_000)   # before the model is made; " + note,
		"try:",
		"    main()",
		"except RuntimeError:",
		"    torch." + module + ".memory._dump_snapshot(\"oom.pickle\")",
		"    raise",
	}
}
