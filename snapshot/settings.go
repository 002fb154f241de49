package snapshot

import (
	"fmt"
	"strconv"

	"github.com/ashlar-mem/ashlar/internal/pickle"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// settings reads allocator_settings (spec 10.8). The text in it is only the
// last one that PyTorch was given; the other fields are the settings in force, so
// they win.
func (b *builder) settings(f *File, p *parts, v pickle.Value) error {
	if b.machine.KindOf(v) != pickle.Dict {
		var err error
		p.extra, err = b.extra(p.extra, pickle.MakeString(uint32(keySettings)), v)
		return err
	}
	x, err := b.expandDict(b.machine.Items(v), 1)
	if err != nil {
		return err
	}
	fields := x.value.(trace.Extra)
	s := &p.settings
	s.Known = true
	s.Fields = fields
	for _, name := range settings.Variables {
		if conf, ok := fields.Get(name).(string); ok {
			s.Conf = conf
			break
		}
	}
	var skipped []string
	if s.Parsed, skipped, err = settings.ParseKnown(s.Conf); err != nil {
		f.warn("the settings text of the file does not parse, its other fields are used: %v", err)
	}
	for _, key := range skipped {
		f.warn("the settings text of the file has %.80q, a key that is not modelled%s: it is left out, the rest holds", key, sinceText(key))
	}
	overlay(&s.Parsed, fields)
	return nil
}

// sinceText names the release that introduced a key.
func sinceText(key string) string {
	if v := settings.Since(key); v != 0 {
		return fmt.Sprintf(" (PyTorch %v has it)", v)
	}
	return ""
}

// defaultSettings returns the settings of a file that has none.
func defaultSettings() trace.Settings { return trace.Settings{Parsed: settings.Default()} }

// overlay puts the fields of the dictionary over what the text says.
func overlay(s *settings.Settings, fields trace.Extra) {
	for _, f := range fields {
		switch f.Name {
		case "max_split_size":
			if n, ok := f.Value.(int64); ok {
				s.MaxSplitSize = settings.None
				if n >= 0 {
					s.MaxSplitSize = uint64(n)
				}
			}
		case "garbage_collection_threshold":
			setFloat(&s.GarbageCollectionThreshold, f.Value)
		case "per_process_memory_fraction":
			setFloat(&s.PerProcessMemoryFraction, f.Value)
		case "expandable_segments":
			setBool(&s.ExpandableSegments, f.Value)
		case "release_lock_on_cudamalloc", "release_lock_on_hipmalloc":
			setBool(&s.ReleaseLockOnMalloc, f.Value)
		case "pinned_use_cuda_host_register", "pinned_use_hip_host_register":
			setBool(&s.PinnedUseHostRegister, f.Value)
		case "pinned_use_background_threads":
			setBool(&s.PinnedUseBackgroundThreads, f.Value)
		case "graph_capture_record_stream_reuse":
			setBool(&s.GraphCaptureRecordStreamReuse, f.Value)
		case "pinned_num_register_threads":
			setUint(&s.PinnedNumRegisterThreads, f.Value)
		case "large_segment_size":
			setUint(&s.LargeSegmentSize, f.Value)
		case "max_non_split_rounding_size", "max_non_split_rounding":
			setUint(&s.MaxNonSplitRounding, f.Value)
		case "roundup_power2_divisions":
			if table, ok := f.Value.(trace.Extra); ok {
				for i := range s.RoundupPower2Divisions {
					setUint(&s.RoundupPower2Divisions[i], table.Get(strconv.Itoa(1<<i)))
				}
			}
		}
	}
}

func setFloat(to *float64, v any) {
	switch v := v.(type) {
	case float64:
		*to = v
	case int64:
		*to = float64(v)
	}
}

func setBool(to *bool, v any) {
	if v, ok := v.(bool); ok {
		*to = v
	}
}

func setUint(to *uint64, v any) {
	if v, ok := v.(int64); ok && v >= 0 {
		*to = uint64(v)
	}
}

func (f *File) warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, fmt.Sprintf(format, args...))
}
