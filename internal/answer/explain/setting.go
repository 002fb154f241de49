package explain

import (
	"context"
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/settings"
)

// oneSetting: with one setting off the request is served.
func (f *failedRequest) oneSetting(ctx context.Context, c replay.Conditions) (verdict, why string, err error) {
	for _, off := range switchedOff(c.Settings) {
		served, err := f.servedAfter(ctx, c, func(m *replay.Paused) error {
			m.Use(off.settings)
			return nil
		})
		if err != nil {
			return "", "", err
		}
		if served {
			return Setting, fmt.Sprintf("with %s off at this request it is served", off.name), nil
		}
		without := f.whole(c)
		without.Settings = off.settings
		passes, _, err := f.passes(ctx, without)
		if err != nil {
			return "", "", err
		}
		if passes {
			return Setting, fmt.Sprintf("with %s off from the beginning the request is served", off.name), nil
		}
	}
	return "", "", nil
}

// switched is a set of settings with one of them at its default.
type switched struct {
	name     string
	settings settings.Settings
}

// switchedOff returns the settings that differ from the defaults, each off in
// turn.
func switchedOff(s settings.Settings) []switched {
	d := settings.Default()
	var out []switched
	add := func(name string, differs bool, change func(*settings.Settings)) {
		if differs {
			off := s
			change(&off)
			out = append(out, switched{name, off})
		}
	}
	add("max_split_size_mb", s.MaxSplitSize != d.MaxSplitSize, func(o *settings.Settings) { o.MaxSplitSize = d.MaxSplitSize })
	add("roundup_power2_divisions", s.RoundupPower2Divisions != d.RoundupPower2Divisions, func(o *settings.Settings) { o.RoundupPower2Divisions = d.RoundupPower2Divisions })
	add("garbage_collection_threshold", s.GarbageCollectionThreshold != d.GarbageCollectionThreshold, func(o *settings.Settings) { o.GarbageCollectionThreshold = d.GarbageCollectionThreshold })
	add("max_non_split_rounding_mb", s.MaxNonSplitRounding != s.LargeSegmentSize, func(o *settings.Settings) { o.MaxNonSplitRounding = o.LargeSegmentSize })
	add("large_segment_size_mb", s.LargeSegmentSize != d.LargeSegmentSize, func(o *settings.Settings) {
		o.LargeSegmentSize, o.MaxNonSplitRounding = d.LargeSegmentSize, d.MaxNonSplitRounding
	})
	add("expandable_segments", s.ExpandableSegments, func(o *settings.Settings) { o.ExpandableSegments = false })
	return out
}
