package explain

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
)

// truth is the state of an allocator whose request failed.
type truth struct {
	total, outside, limit     uint64 // limit 0: none
	live, pools, unused, free uint64
	request, segment          uint64 // rounded
	asked, askedRequest       uint64 // before rounding, and without rests that were not split off
	pending                   uint64
}

func (s *truth) reserved() uint64 { return s.live + s.pools + s.unused }
func (s *truth) need() uint64     { return s.live + s.request }

// least returns what tensors need with the best of settings.
func (s *truth) least() uint64 { return s.asked + s.askedRequest }

// dump returns what memory_stats() says (spec 9.2): requested_bytes counts what
// is pending, too.
func (s *truth) dump() *stats.Dump {
	return dump(map[string]int64{
		"allocated_bytes.all.current": int64(s.live), "reserved_bytes.all.current": int64(s.reserved()), "active_bytes.all.current": int64(s.live + s.pending),
		"requested_bytes.all.current": int64(s.asked + s.pending), "num_ooms": 1, "num_alloc_retries": 1,
	})
}

func (s *truth) available() uint64 {
	there := s.reserved() + s.free
	if s.limit > 0 {
		there = min(there, s.limit)
	}
	return there
}

// message returns what PyTorch 2.4 and later print (spec 13.1).
func (s *truth) message() string {
	size := units.Torch
	var b strings.Builder
	fmt.Fprintf(&b, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %s. GPU 0 has a total capacity of %s of which %s is free. ",
		size(s.segment), size(s.total), size(s.free))
	if s.limit > 0 {
		fmt.Fprintf(&b, "%s allowed; ", size(s.limit))
	}
	fmt.Fprintf(&b, "Of the allocated memory %s is allocated by PyTorch, ", size(s.live+s.pools))
	if s.pools > 0 {
		fmt.Fprintf(&b, "with %s allocated in private pools (e.g., CUDA Graphs), ", size(s.pools))
	}
	fmt.Fprintf(&b, "and %s is reserved by PyTorch but unallocated.", size(s.unused))
	return b.String()
}

// randomTruth makes a state in which a request fails; false if it would not.
func randomTruth(r *rand.Rand) (*truth, bool) {
	part := func(n uint64) uint64 { return uint64(r.Float64() * float64(n)) }
	s := &truth{total: 2<<30 + part(150<<30)}
	s.outside = 200<<20 + part(2<<30)
	if r.IntN(3) == 0 {
		s.outside = part(s.total)
	}
	s.outside = min(s.outside, s.total)
	room := s.total - s.outside
	if r.IntN(2) == 0 {
		s.limit = part(s.total) + 1
		room = min(room, s.limit)
	}
	reserved := room - part(room)/uint64(1+r.IntN(40))
	s.live = reserved - part(reserved)/uint64(1+r.IntN(40))
	s.unused = reserved - s.live
	if r.IntN(3) == 0 {
		s.pools = part(s.unused)
		s.unused -= s.pools
	}
	s.free = s.total - s.outside - reserved
	s.request = max(512, uint64(math.Exp(r.Float64()*math.Log(20<<30)))/512*512)
	s.asked, s.askedRequest = s.live, s.request
	switch r.IntN(4) {
	case 0: // roundup_power2_divisions
		s.asked, s.askedRequest = s.live-part(s.live/3), s.request-part(s.request/3)
	case 1: // rests that were not split off
		s.asked = s.live - part(s.live/2)
	}
	s.pending = part(s.unused) / 2
	switch {
	case s.request <= 1<<20:
		s.segment = 2 << 20
	case s.request < 10<<20:
		s.segment = 20 << 20
	default:
		s.segment = (s.request + 2<<20 - 1) / (2 << 20) * (2 << 20)
	}
	return s, s.segment > s.free || s.limit > 0 && reserved+s.segment > s.limit
}

// TestTruth: from the printed message alone nothing is said that is not so.
func TestTruth(t *testing.T) {
	// slack is more than all the rounding in a message: of four sizes, and of
	// the request, which may be anything up to its segment of 20 MiB.
	const slack = 48 << 20
	r := rand.New(rand.NewPCG(5, 7))
	seen := map[string]int{}
	for n := 0; n < short.Times(4000); {
		s, fails := randomTruth(r)
		if !fails {
			continue
		}
		n++
		in, with := Input{Message: oom(t, s.message())}, ""
		if r.IntN(3) == 0 {
			in.Stats, with = s.dump(), " with a dump"
		}
		report := fromText(t, in)
		seen[report.Trigger+" "+report.Confidence+with]++
		over := report.Trigger == Capacity || report.Trigger == External && report.Evidence.Gap != nil
		wrong := ""
		hopeless := strings.Contains(report.Summary, "No allocator setting helps")
		switch capped := s.limit > 0 && s.limit <= s.reserved()+s.free; {
		case report.Confidence == Certain && report.Trigger != Capacity:
			wrong = "certain without the processes"
		case (hopeless || report.Confidence == Certain) && s.least() <= s.available():
			wrong = "a setting can help"
		case in.Stats != nil && report.Trigger == Capacity && !hopeless && s.asked+s.askedRequest*2/3 > s.available()+s.pending+slack:
			wrong = "the dump proves that no setting can help"
		case report.Confidence != Open && over != (s.need() > s.available()):
			wrong = "too little memory, or not"
		case s.need() > s.available()+slack && !over:
			wrong = "far too little memory"
		case s.need()+slack < s.available() && over:
			wrong = "far from too little memory"
		case report.Confidence == Certain && !capped && s.need()+normalExternal+slack < s.total && (s.limit == 0 || s.need()+slack < s.limit):
			wrong = "it would fit alone"
		case report.Trigger == External && s.outside+slack < normalExternal:
			wrong = "nobody holds more than a context"
		case report.Trigger == External && capped && s.need() > s.limit+slack:
			wrong = "the limit is too low"
		case report.Trigger == Pools && s.pools+slack < s.request:
			wrong = "little is in private pools"
		case report.Trigger == Unknown:
			// A free block of nearly the size: the rounding hides it.
			if s.segment > s.free+slack || s.limit > 0 && s.reserved()+s.segment > s.limit+slack {
				wrong = "it is known why"
			}
		case report.Capped && (s.limit == 0 || s.free+slack < s.segment):
			wrong = "no cap, or no room"
		}
		for _, f := range report.Fixes {
			switch {
			case f.Kind == FixMemory && s.reserved()+s.segment > s.available()+*f.Bytes:
				wrong = "that much more is not enough"
			case f.Kind == FixCode && s.need() > s.available() && *f.Bytes < s.need()-s.available():
				wrong = "that much less is not enough"
			}
		}
		if wrong != "" {
			t.Errorf("%s: %s %s of %+v\n%s\n%s", wrong, report.Trigger, report.Confidence, *s, s.message(), report.Summary)
		}
	}
	for _, want := range []string{"capacity certain", "capacity likely", "capacity certain with a dump", "capacity likely with a dump", "capacity open", "outside likely", "pools likely", "pools open", "fragmentation open"} {
		if seen[want] == 0 {
			t.Errorf("never %s: %v", want, seen)
		}
	}
	t.Log(seen)
}

// TestParts: a message of which any part is missing is explained as well.
func TestParts(t *testing.T) {
	whole := oom(t, wild[slices.IndexFunc(wild, func(w wildMessage) bool { return w.name == "keys_values#92" })].text)
	n := 0
	for mask := range 1 << 8 {
		o := *whole
		limit, active, pools := units.Exactly(37<<30), units.Exactly(37<<30), units.Exactly(1<<20)
		o.LimitBytes, o.ActiveBytes, o.PrivatePoolBytes = &limit, &active, &pools
		for i, field := range []**units.Range{
			&o.TriedBytes, &o.TotalBytes, &o.FreeBytes, &o.AllocatedBytes, &o.ReservedUnallocatedBytes, &o.LimitBytes, &o.ActiveBytes, &o.PrivatePoolBytes,
		} {
			if mask&(1<<i) != 0 {
				*field = nil
			}
		}
		r := fromText(t, Input{Message: &o})
		n++
		if r.Trigger == "" || mask&0b01001 != 0 && r.Trigger != Unknown && r.Trigger != Capacity {
			t.Errorf("%b: %s", mask, r.Trigger)
		}
	}
	if n != 256 {
		t.Errorf("%d messages", n)
	}
}
