package tune

import (
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
)

const mib = 1 << 20

// The values that are tried. Sizes are in MiB.
var (
	splits        = []uint64{0, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256, 320, 384, 512, 640, 768, 1024, 1536, 2048, 3072, 4096, 8192}
	coarseSplits  = []uint64{0, 20, 32, 64, 128, 256, 512, 1024, 2048}
	divisions     = []uint64{1, 2, 4, 8, 16, 32}
	segments      = []uint64{20, 12, 16, 24, 32, 40, 48, 64, 96, 128, 192, 256}
	nonSplits     = []uint64{20, 32, 64, 128, 256, 512, 1024}
	thresholds    = []float64{0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95}
	bucketChoices = []uint64{1, 2, 4, 8, 16}
)

// space makes candidates for one recording.
type space struct {
	base  settings.Settings // what is not searched stays as it is
	sizes []uint64          // distinct sizes of requests, ascending
	used  [16]bool          // which entries of the rounding table any request falls into
	seen  map[settings.Settings]bool
	// limited: a limit is in force. PyTorch collects garbage only then.
	limited bool
	of      answer.Allocator
	use     answer.Use // what the candidates may need
}

// newSpace looks at the requests of a program.
func newSpace(p *replay.Program, limited bool) *space {
	s := &space{base: p.Settings, seen: map[settings.Settings]bool{}, limited: limited, of: answer.AllocatorOf(p.Trace)}
	distinct := map[uint64]bool{}
	for i := range p.Len() {
		c := p.Call(i)
		if c.Kind != replay.CallAlloc && c.Kind != replay.CallTry {
			continue
		}
		s.used[alloc.RoundingEntry(c.Size)] = true
		distinct[c.Size] = true
	}
	for size := range distinct {
		s.sizes = append(s.sizes, size)
	}
	slices.Sort(s.sizes)
	return s
}

// clean returns the base with everything that is searched at its default.
func (s *space) clean() settings.Settings {
	d, b := settings.Default(), s.base
	d.PinnedUseBackgroundThreads, d.PinnedUseHostRegister = b.PinnedUseBackgroundThreads, b.PinnedUseHostRegister
	d.PinnedNumRegisterThreads, d.PinnedReserveSegmentSize = b.PinnedNumRegisterThreads, b.PinnedReserveSegmentSize
	d.ReleaseLockOnMalloc, d.GraphCaptureRecordStreamReuse = b.ReleaseLockOnMalloc, b.GraphCaptureRecordStreamReuse
	return d
}

// grid returns the product of some values.
func (s *space) grid(splits, divisions, segments []uint64) []settings.Settings {
	var out []settings.Settings
	for _, expandable := range []bool{true, false} {
		for _, segment := range segments {
			for _, d := range divisions {
				rank := -1
				for _, split := range splits {
					c := s.clean()
					c.ExpandableSegments = expandable
					c = withSegment(c, segment)
					for i := range c.RoundupPower2Divisions {
						c.RoundupPower2Divisions[i] = d
					}
					if d == 1 {
						c.RoundupPower2Divisions = settings.Default().RoundupPower2Divisions
					}
					if split > 0 {
						r := s.rank(split * mib)
						if r == rank || r == len(s.sizes) {
							continue // as the one before, or as none
						}
						rank = r
						c.MaxSplitSize = split * mib
					}
					out = append(out, c)
				}
			}
		}
	}
	return out
}

// rank returns how many sizes are below a value.
func (s *space) rank(size uint64) int {
	n, _ := slices.BinarySearch(s.sizes, size)
	return n
}

func withSegment(c settings.Settings, segment uint64) settings.Settings {
	c.LargeSegmentSize = segment * mib
	c.MaxNonSplitRounding = c.LargeSegmentSize // follows unless set
	return c
}

// neighbours are settings that differ from one in a single value.
func (s *space) neighbours(c settings.Settings) []settings.Settings {
	var out []settings.Settings
	add := func(change func(*settings.Settings)) {
		n := c
		change(&n)
		out = append(out, n)
	}
	add(func(n *settings.Settings) { n.ExpandableSegments = !n.ExpandableSegments })
	for _, split := range splits {
		add(func(n *settings.Settings) {
			if n.MaxSplitSize = split * mib; split == 0 {
				n.MaxSplitSize = settings.None
			}
		})
	}
	for _, segment := range segments {
		out = append(out, withSegment(c, segment))
	}
	if c.MaxSplitSize != settings.None {
		for _, r := range nonSplits {
			add(func(n *settings.Settings) { n.MaxNonSplitRounding = r * mib })
		}
	}
	for k, used := range s.used {
		for _, d := range bucketChoices {
			if used {
				add(func(n *settings.Settings) { n.RoundupPower2Divisions[k] = d })
			}
		}
	}
	for _, d := range divisions {
		add(func(n *settings.Settings) {
			for i := range n.RoundupPower2Divisions {
				n.RoundupPower2Divisions[i] = d
			}
		})
	}
	for _, t := range thresholds {
		if s.limited || t == 0 {
			add(func(n *settings.Settings) { n.GarbageCollectionThreshold = t })
		}
	}
	return out
}

// fresh keeps the candidates that PyTorch accepts, that can be used by now, or
// after an upgrade, as s.use says, and that were not tried yet.
func (s *space) fresh(in []settings.Settings) []settings.Settings {
	var out []settings.Settings
	for _, c := range in {
		c = normal(c)
		if use, _ := s.of.Takes(c); s.seen[c] || use != s.use {
			continue
		}
		s.seen[c] = true
		if parsed, err := settings.Parse(c.String()); err != nil || normal(parsed) != c {
			continue
		}
		out = append(out, c)
	}
	return out
}

// normal makes settings equal that mean the same: 0 and 1 are both no rounding.
func normal(c settings.Settings) settings.Settings {
	for i, d := range c.RoundupPower2Divisions {
		if d <= 1 {
			c.RoundupPower2Divisions[i] = 0
		}
	}
	return c
}

// rank orders settings by how simple they are: the recorded ones apart, those
// with least to set, expandable segments before other keys.
func rank(c settings.Settings) int {
	r := 2 * changes(c)
	if c.ExpandableSegments {
		r--
	}
	return r
}

// changes counts the keys that settings name, and what is harder to set twice: a
// table, and a key that only the newest PyTorch knows.
func changes(c settings.Settings) int {
	text := c.String()
	if text == "" {
		return 0
	}
	depth, n := 0, 1
	if slices.ContainsFunc(c.Keys(), func(key string) bool { return settings.Since(key) >= pytorch.Default }) {
		n++
	}
	for _, r := range text {
		switch r {
		case '[':
			depth++
			n++
		case ']':
			depth--
		case ',':
			if depth == 0 {
				n++
			}
		}
	}
	return n
}
