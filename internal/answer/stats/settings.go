package stats

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// Settings are the allocator's settings, as far as they are not the defaults.
type Settings struct {
	Known      bool      `json:"known"`
	Conf       *string   `json:"conf"`
	NonDefault []Setting `json:"non_default"`
}

// Setting is one setting and what it does.
type Setting struct {
	Key     string `json:"key"`
	Value   string `json:"value"`
	Meaning string `json:"meaning"`
}

func settingsOf(t *trace.Trace) Settings {
	s := Settings{Known: t.Settings.Known, NonDefault: []Setting{}}
	if !s.Known {
		return s
	}
	conf := t.Settings.Conf
	s.Conf = &conf
	s.NonDefault = append(s.NonDefault, explain(t.Settings.Parsed)...)
	return s
}

// explain lists the settings that differ from the defaults. Each is written as
// settings.String writes it.
func explain(s settings.Settings) []Setting {
	var out []Setting
	for _, part := range splitConf(s.String()) {
		key, value, _ := strings.Cut(part, ":")
		out = append(out, Setting{key, value, meaning(s, key)})
	}
	return out
}

// splitConf cuts a canonical text at the commas outside lists.
func splitConf(conf string) []string {
	var out []string
	depth, from := 0, 0
	for i := range len(conf) {
		switch conf[i] {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, conf[from:i])
				from = i + 1
			}
		}
	}
	if from < len(conf) {
		out = append(out, conf[from:])
	}
	return out
}

func meaning(s settings.Settings, key string) string {
	switch key {
	case "max_split_size_mb":
		return fmt.Sprintf("blocks of %s or more are never split, and serve only large requests", units.Size(s.MaxSplitSize))
	case "max_non_split_rounding_mb":
		return fmt.Sprintf("an unsplit block may be up to %s larger than the request", units.Size(s.MaxNonSplitRounding))
	case "large_segment_size_mb":
		return fmt.Sprintf("requests of %s share segments of %s", units.FromTo(alloc.SmallMax, alloc.OwnSegmentMin), units.Size(s.LargeSegmentSize))
	case "garbage_collection_threshold":
		return fmt.Sprintf("above %.0f %% of the memory limit old cached blocks are freed", 100*s.GarbageCollectionThreshold)
	case "roundup_power2_divisions":
		return "sizes are rounded up to steps between powers of two"
	case "expandable_segments":
		return "segments grow and shrink in place, by mapping memory"
	case "backend":
		return "the driver's own pool allocator instead of PyTorch's"
	case "per_process_memory_fraction":
		return fmt.Sprintf("at most %.1f %% of the device's memory", 100*s.PerProcessMemoryFraction)
	case "release_lock_on_cudamalloc":
		return "other threads may allocate while the driver is asked for memory"
	case "graph_capture_record_stream_reuse":
		return "blocks used on other streams are reused within a graph capture"
	case "pinned_use_background_threads", "pinned_use_cuda_host_register", "pinned_num_register_threads", "pinned_reserve_segment_size_mb":
		return "page-locked host memory only"
	}
	return ""
}
