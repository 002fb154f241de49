package playground

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// rule is what a sentence is about.
type rule struct{ key, name string }

// The rules. Keys are stable.
var (
	sayRounding    = rule{"rounding", "Rounding"}
	sayPool        = rule{"pool", "Pool"}
	sayPrivatePool = rule{"private_pool", "Private pool"}
	sayTenants     = rule{"tenant", "Tenant"}
	sayBestFit     = rule{"best_fit", "Best fit"}
	sayNoFit       = rule{"no_fit", "No fit"}
	saySplit       = rule{"split", "Split"}
	sayNoSplit     = rule{"no_split", "No split"}
	saySegment     = rule{"segment_size", "Segment size"}
	sayLimitRule   = rule{"limit", "Limit"}
	sayDriver      = rule{"driver", "Driver"}
	sayNewSegment  = rule{"new_segment", "New segment"}
	sayReservation = rule{"reservation", "Addresses"}
	sayGrowth      = rule{"growth", "Growth"}
	sayMapping     = rule{"mapping", "Mapping"}
	sayCollection  = rule{"garbage_collection", "Garbage collection"}
	sayAge         = rule{"age", "Age"}
	sayTargeted    = rule{"targeted_release", "Targeted release"}
	sayRelease     = rule{"release", "Release"}
	sayReleased    = rule{"given_back", "Given back"}
	sayUnmapping   = rule{"unmapping", "Unmapping"}
	sayStranded    = rule{"stranded", "Stranded"}
	sayFree        = rule{"free", "Free"}
	sayMerge       = rule{"merge", "Merge"}
	sayStreamUse   = rule{"record_stream", "record_stream"}
	sayPending     = rule{"pending", "Pending"}
	sayPassed      = rule{"event", "Event"}
	sayHandedOut   = rule{"result", "Handed out"}
	sayOOM         = rule{"out_of_memory", "Out of memory"}
	sayNoSearch    = rule{"no_second_search", "No second search"}
	sayConf        = rule{"settings", "Settings"}
	sayWork        = rule{"work", "Work"}
	sayNothing     = rule{"nothing", "Nothing happens"}
)

// mostSentences of a step; a release of a thousand segments is one decision.
const mostSentences = 40

// words puts the decisions of one step into sentences. It does so as they come,
// because segments lose their letters when they are given back.
type words struct {
	game  *game
	said  []Sentence
	more  int    // sentences left out
	given given  // segments that were given back, not told yet
	stuck pinned // free blocks that could not be, not told yet
	block uint64 // size of the block that is handed out
}

// say adds a sentence if the step is looked at.
func (g *game) say(r rule, format string, args ...any) {
	if g.words != nil {
		g.words.say(r, format, args...)
	}
}

func (w *words) say(r rule, format string, args ...any) {
	if len(w.said) >= mostSentences {
		w.more++
		return
	}
	w.said = append(w.said, Sentence{r.key, r.name, fmt.Sprintf(format, args...)})
}

// finish says what was gathered.
func (w *words) finish() {
	w.flush()
	if w.more > 0 {
		w.said = append(w.said, Sentence{"more", "More", fmt.Sprintf("%s sentences of this kind are left out.", units.Count(int64(w.more)))})
	}
}

func capital(text string) string {
	if text == "" || text[0] < 'a' || text[0] > 'z' {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// where is a place in a segment.
func (w *words) where(addr uint64) string {
	segment, offset, ok := w.game.runner.Place(addr)
	switch {
	case !ok:
		return fmt.Sprintf("at %#x", addr)
	case offset == 0:
		return "at the start of " + segment
	default:
		return fmt.Sprintf("at %s+%s", segment, units.Size(offset))
	}
}

// the is a block with its size and its place.
func (w *words) the(s alloc.Span) string {
	return fmt.Sprintf("the %s block %s", units.Size(s.Size), w.where(s.Addr))
}

// who is a block with its name, if it has one.
func (w *words) who(s alloc.Span) string {
	if h := w.game.held[s.Addr]; h != nil {
		return fmt.Sprintf("%s, %s %s,", h.name, units.Size(s.Size), w.where(s.Addr))
	}
	return w.the(s)
}

// pair writes two sizes so that they can be told apart: in bytes where rounded
// figures are the same.
func pair(a, b uint64) (string, string) {
	if a != b && units.Size(a) == units.Size(b) {
		return units.Count(int64(a)) + " bytes", units.Count(int64(b)) + " bytes"
	}
	return units.Size(a), units.Size(b)
}

// compare writes two sizes with the sign that holds between them.
func compare(a uint64, sign string, b uint64) string {
	left, right := pair(a, b)
	return left + " " + sign + " " + right
}

func poolName(large bool) string {
	if large {
		return "large pool"
	}
	return "small pool"
}

func streams(list []uint64) string {
	text := make([]string, len(list))
	for i, s := range list {
		text[i] = fmt.Sprint(s)
	}
	if len(list) == 1 {
		return "stream " + text[0]
	}
	return "streams " + strings.Join(text, ", ")
}

// heed puts a decision into words.
func (w *words) heed(d alloc.Decision) {
	switch d.(type) {
	case alloc.Aging, alloc.Released, alloc.Pinned, alloc.Unmapping:
	default:
		w.flush()
	}
	switch d := d.(type) {
	case alloc.Rounding:
		w.rounding(d)
	case alloc.PoolChoice:
		w.pool(d)
	case alloc.BestFit:
		w.bestFit(d)
	case alloc.NoFit:
		w.noFit(d)
	case alloc.Splitting:
		w.splitting(d)
	case alloc.SegmentChoice:
		w.segmentChoice(d)
	case alloc.LimitRefusal:
		a, b := pair(d.Reserved+d.Segment, d.Limit)
		w.say(sayLimitRule, "%s are reserved; with %s more it would be %s, above the limit of %s: refused.",
			units.Size(d.Reserved), units.Size(d.Segment), a, b)
	case alloc.DriverRefusal:
		w.driverRefusal(d)
	case alloc.NewSegment:
		name, _, _ := w.game.runner.Place(d.Segment.Addr)
		w.say(sayNewSegment, "the driver gives %s: segment %s (cudaMalloc).", units.Size(d.Segment.Size), name)
	case alloc.Reservation:
		w.say(sayReservation, "no expandable segment of the %s of stream %d has room: addresses for %s are reserved, without memory behind them.",
			poolName(d.Large), d.Stream, units.Size(d.Range.Size))
	case alloc.Growth:
		w.growth(d)
	case alloc.Mapping:
		w.mapping(d)
	case alloc.Collection:
		w.collection(d)
	case alloc.Aging:
		w.aging(d)
	case alloc.TargetedRelease:
		w.say(sayTargeted, "max_split_size_mb is set, so free segments of at least that size are looked for: one of %s, or several that are as much together.",
			units.Size(d.Want))
	case alloc.FullRelease:
		w.fullRelease(d)
	case alloc.Released:
		w.given.add(w, d.Segment)
	case alloc.Unmapping:
		w.unmapping(d)
	case alloc.Pinned:
		w.stuck.add(d)
	case alloc.Return:
		w.returned(d)
	case alloc.StreamUse:
		w.streamUse(d)
	case alloc.Pending:
		w.say(sayPending, "%s is freed, but %s may still use it: an event is recorded there, and until it is done the block serves nobody.",
			w.who(d.Block), streams(d.Streams))
	case alloc.StillPending:
		w.say(sayPassed, "the work of stream %d is not done: %s stays pending.", d.Stream, w.who(d.Block))
	case alloc.Passed:
		w.say(sayPassed, "the other streams are past the free: %s returns to its pool.", w.who(d.Block))
	}
}
