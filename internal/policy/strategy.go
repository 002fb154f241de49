package policy

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// Strategy is a way to hand out memory.
type Strategy struct {
	Name string
	// Streams says that one heap serves all streams; otherwise each has its own.
	Streams bool
	// Fixed says that the strategy takes all its memory at once: Options.Region says
	// how much.
	Fixed bool
	// Parameters are what the strategy is set to, as in its documentation.
	Parameters map[string]any

	make func(*Allocator, uint16, Place) heap
}

// Names are what Parse reads, without the variants of async.
var Names = []string{"best-fit", "first-fit", "next-fit", "buddy", "slab", "binning", "bfc", "bfc-growth", "async:0", "async:max"}

// Parse returns the strategy of a name. async has a threshold behind a colon, and
// behind another one each reuse attribute that is off: async:max:no-internal.
func Parse(name string) (*Strategy, error) {
	s := &Strategy{Name: name, Parameters: map[string]any{}}
	p := s.Parameters
	switch {
	case name == "best-fit":
		s.make = newFit(best)
	case name == "first-fit":
		s.make = newFit(first)
	case name == "next-fit":
		s.make = newFit(next)
	case name == "buddy":
		s.make = newBuddy
	case name == "slab":
		s.make = newSlabs
		p["classes_per_doubling"], p["largest_class_bytes"], p["slab_bytes"] = 4, mostSlotted, slabSize
	case name == "binning":
		s.make, s.Streams = newBinning, true
		p["bin_growth"], p["min_bin"], p["max_bin"], p["max_cached_bytes"] = 8, 3, 7, mostKept
		return s, nil
	case name == "bfc":
		s.make, s.Fixed = newBFC, true
		p["unit_bytes"] = bfcUnit
		return s, nil
	case name == "bfc-growth":
		s.make = newBFCGrowth
		p["unit_bytes"], p["first_region_bytes"] = bfcUnit, bfcRegion
		return s, nil
	case name == "async" || strings.HasPrefix(name, "async:"):
		return parseAsync(s)
	default:
		return nil, fmt.Errorf("unknown policy %q", name)
	}
	p["unit_bytes"], p["granule_bytes"] = unit, granule
	return s, nil
}

func parseAsync(s *Strategy) (*Strategy, error) {
	pool := Pool{Threshold: Unlimited, Opportunistic: true, Internal: true}
	follow := true
	words := strings.Split(s.Name, ":")[1:]
	if len(words) > 0 && words[0] != "max" {
		n, err := units.ParseMemory(words[0])
		if err != nil {
			return nil, fmt.Errorf("policy %q: the release threshold is max or a size: %w", s.Name, err)
		}
		pool.Threshold = n
	}
	for _, w := range words[min(1, len(words)):] {
		switch w {
		case "no-follow":
			follow = false
		case "no-opportunistic":
			pool.Opportunistic = false
		case "no-internal":
			pool.Internal = false
		default:
			return nil, fmt.Errorf("policy %q: %q is none of no-follow, no-opportunistic and no-internal", s.Name, w)
		}
	}
	s.make, s.Streams = newAsync(pool), true
	p := s.Parameters
	p["release_threshold_bytes"] = pool.Threshold
	if pool.Threshold == Unlimited {
		p["release_threshold_bytes"] = "max"
	}
	p["reuse_follow_event_dependencies"], p["reuse_allow_opportunistic"], p["reuse_allow_internal_dependencies"] = follow, pool.Opportunistic, pool.Internal
	p["unit_bytes"], p["growth_bytes"] = unit, asyncPiece
	return s, nil
}
