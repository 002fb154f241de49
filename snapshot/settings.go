package snapshot

import (
	"fmt"
	"strconv"

	"github.com/ashlar-mem/ashlar/internal/pickle"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// What libashlar.so adds to allocator_settings: how much of what the segments list lies in the host's memory (tiers), and how much has
// no memory behind it.
const (
	HostBytesKey    = "ashlar_host_bytes"
	DroppedBytesKey = "ashlar_dropped_bytes"
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
	for _, k := range []struct{ key, where string }{
		{HostBytesKey, "lies in the host's (park or overflow of libashlar.so)"},
		{DroppedBytesKey, "was dropped (park of libashlar.so with keep=False)"},
	} {
		if n, ok := fields.Get(k.key).(int64); ok && n > 0 {
			f.warn("%s of what this file lists as the device's memory %s: "+
				"sums are too high by that, and a replay, which knows the device alone, parts from the file", units.Size(uint64(n)), k.where)
		}
	}
	for _, name := range overlay(&s.Parsed, fields) {
		f.warn("the setting %q of the file has a value that it cannot have: it is ignored", name)
	}
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

// overlay puts the fields of the dictionary over what the text says. It returns
// the names of those whose values are out of range.
func overlay(s *settings.Settings, fields trace.Extra) (odd []string) {
	for _, f := range fields {
		ok := true
		switch f.Name {
		case "max_split_size":
			if n, ok := f.Value.(int64); ok {
				s.MaxSplitSize = settings.None
				if n >= 0 && n <= maxSize {
					s.MaxSplitSize = uint64(n)
				}
			}
		case "garbage_collection_threshold":
			ok = setFraction(&s.GarbageCollectionThreshold, f.Value)
		case "per_process_memory_fraction":
			ok = setFraction(&s.PerProcessMemoryFraction, f.Value)
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
			ok = setUint(&s.PinnedNumRegisterThreads, f.Value)
		case "large_segment_size":
			ok = setUint(&s.LargeSegmentSize, f.Value)
		case "max_non_split_rounding_size", "max_non_split_rounding":
			ok = setUint(&s.MaxNonSplitRounding, f.Value)
		case "roundup_power2_divisions":
			if table, is := f.Value.(trace.Extra); is {
				for i := range s.RoundupPower2Divisions {
					ok = setUint(&s.RoundupPower2Divisions[i], table.Get(strconv.Itoa(1<<i))) && ok
				}
			}
		}
		if !ok {
			odd = append(odd, f.Name)
		}
	}
	return odd
}

// setFraction sets what is between 0 and 1; values of other types are left alone.
func setFraction(to *float64, v any) (ok bool) {
	var x float64
	switch v := v.(type) {
	case float64:
		x = v
	case int64:
		x = float64(v)
	default:
		return true
	}
	if ok = x >= 0 && x <= 1; ok {
		*to = x
	}
	return ok
}

func setBool(to *bool, v any) {
	if v, ok := v.(bool); ok {
		*to = v
	}
}

// setUint sets a number of bytes, or a smaller one; values of other types are left
// alone.
func setUint(to *uint64, v any) (ok bool) {
	n, number := v.(int64)
	if ok = !number || n >= 0 && n <= maxSize; ok && number {
		*to = uint64(n)
	}
	return ok
}

func (f *File) warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, fmt.Sprintf(format, args...))
}
