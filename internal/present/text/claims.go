package text

import (
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
)

// ClaimsPage says what settings did to other runs. tools/claims writes it.
const ClaimsPage = "docs/claims.md"

// claimOf maps keys of PYTORCH_CUDA_ALLOC_CONF to rows of the page.
var claimOf = map[string]string{
	"expandable_segments":          "expandable-segments",
	"max_split_size_mb":            "max-split-size",
	"garbage_collection_threshold": "gc-threshold",
	"roundup_power2_divisions":     "roundup",
}

// ClaimsOf returns the rows of the page that concern the results of an answer:
// settings that are offered as one have a row of their own.
func ClaimsOf(results []*whatif.Result) []string {
	var rows []string
	add := func(row string) {
		if row != "" && !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
	}
	for _, r := range results {
		if r.EmptyCache != nil {
			add("empty-cache")
		}
		if r.Change != nil && *r.Change == whatif.ChangeNoCache {
			add("caching-driver")
		}
		s, err := whatif.ParseSetting(r.Settings)
		if err != nil || r.Recorded {
			continue
		}
		keys := s.Parsed.Keys()
		switch {
		case len(keys) == 3 && s.Parsed.ExpandableSegments && strings.Contains(r.Settings, "max_split_size_mb:128"):
			add("training-preset")
		case len(keys) == 3 && s.Parsed.ExpandableSegments && strings.Contains(r.Settings, "max_split_size_mb:512"):
			add("inference-preset")
		default:
			for _, k := range keys {
				add(claimOf[k])
			}
		}
	}
	return rows
}
