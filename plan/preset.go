package plan

// preset is an implementation whose allocations are known, with what is known
// about how well.
type preset struct {
	name string
	// How far nineteen of twenty measured peaks lay below and above planned ones
	// at most, as parts of the planned; TestRangesHoldMeasuredPeaks has the runs.
	missed                            string
	missLow, missHigh                 float64
	missReservedLow, missReservedHigh float64
}

var presets = []preset{{
	name:    "hf-5.17",
	missed:  "nineteen of twenty measured runs were off by less than this",
	missLow: 0.005, missHigh: 0.005, missReservedLow: 0.015, missReservedHigh: 0.015,
}}

func presetNames() []string {
	out := make([]string, len(presets))
	for i, p := range presets {
		out[i] = p.name
	}
	return out
}
