package explain

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot/message"
)

// A message counts what blocks take, and a block can take more than its tensor
// asked for: roundup_power2_divisions rounds requests up, and a small rest is not
// split off a block of the large pool unless expandable segments are on (spec 1.2
// and 4.1), a larger one neither with max_split_size_mb. That padding goes
// away with other settings. So what blocks take never proves that no setting
// helps: only what tensors asked for does, which memory_stats() counts.

// leastRequest returns the least that the request can take under other
// settings.
func (a *textEvidence) leastRequest() uint64 {
	if o := a.Message; o != nil && (o.Backend != message.Native || o.Platform == apple) {
		return a.request.Low // they do not round
	}
	return alloc.LeastRounded(a.request.Low)
}

// leastLive returns the least that the live tensors asked for, 0 if that is not
// known.
func (a *textEvidence) leastLive() uint64 {
	requested := a.value("requested_bytes.all.current")
	if !a.sameMoment || requested == nil || a.pending == nil {
		return 0
	}
	return requested.Low - min(requested.Low, a.pending.High) // it counts what is pending, too
}

// proved reports whether the request fails whatever the settings are.
func (a *textEvidence) proved(there units.Range) bool {
	return units.Exactly(a.leastLive()).Add(units.Exactly(a.leastRequest())).Low > there.High
}

// settingsHelp says whether settings can close the gap, and how sure it is that
// none does.
func (a *textEvidence) settingsHelp(gap, there units.Range) (confidence, said string) {
	if a.proved(there) {
		return Certain, "No allocator setting helps"
	}
	causes := a.paddedBy()
	if len(causes) == 0 {
		return Likely, "If the settings are as given, no other helps"
	}
	tells := "; requested_bytes in memory_stats(), or a snapshot, shows it"
	if a.leastLive() > 0 {
		tells = "; a snapshot shows it"
	}
	a.alternative(Setting, "about %s or more of it is padding, which blocks have beyond what was requested: by %s%s", units.Size(gap.Mid), strings.Join(causes, " or "), tells)
	return Likely, "An allocator setting helps only if that much of it is padding"
}

// paddedBy names what may make blocks larger than their tensors.
func (a *textEvidence) paddedBy() []string {
	rests := fmt.Sprintf("rests that are not split off blocks (up to %s each, more with max_split_size_mb; expandable_segments:True splits them off)",
		units.Whole(alloc.UnsplitMax))
	if a.settings == nil {
		return []string{"roundup_power2_divisions, if it is on,", rests}
	}
	var causes []string
	for _, off := range switchedOff(*a.settings) {
		if off.name == roundup {
			causes = append(causes, fmt.Sprintf("%s, which is on,", roundup))
		}
	}
	if !a.settings.ExpandableSegments {
		causes = append(causes, rests)
	}
	return causes
}

const roundup = "roundup_power2_divisions"
