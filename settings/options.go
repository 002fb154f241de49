package settings

import (
	"fmt"
	"strconv"

	"github.com/ashlar-mem/ashlar/settings/pytorch"
)

const largeSegmentSize = "large_segment_size_mb"

// options is the table of spec 11.3, in the order in which String writes it.
var options = [...]option{
	mebibytes(largeSegmentSize, func(s *Settings) *uint64 { return &s.LargeSegmentSize },
		"a whole number above 10 (MiB)",
		func(_ Settings, mb uint64) string {
			return unless(mb > 10, "CachingAllocator option large_segment_size_mb must be > 10 MB")
		}).from(2, 11),
	mebibytes("max_split_size_mb", func(s *Settings) *uint64 { return &s.MaxSplitSize },
		atLeastLargeSegment, tooSmall("max_split_size_mb")),
	mebibytes("max_non_split_rounding_mb", func(s *Settings) *uint64 { return &s.MaxNonSplitRounding },
		atLeastLargeSegment, tooSmall("max_non_split_rounding_mb")).from(2, 6),
	fraction("garbage_collection_threshold", func(s *Settings) *float64 { return &s.GarbageCollectionThreshold },
		"a number above 0 and below 1",
		func(x float64) string {
			return unless(x > 0 && x < 1, "garbage_collect_threshold is invalid, set it in (0.0, 1.0)")
		}),
	divisions,
	boolean("expandable_segments", "", func(s *Settings) *bool { return &s.ExpandableSegments }).from(2, 1),
	boolean("pinned_use_background_threads", "", func(s *Settings) *bool { return &s.PinnedUseBackgroundThreads }).from(2, 6),
	backend,
	boolean("release_lock_on_cudamalloc", "release_lock_on_hipmalloc",
		func(s *Settings) *bool { return &s.ReleaseLockOnMalloc }).from(2, 2),
	boolean("pinned_use_cuda_host_register", "pinned_use_hip_host_register",
		func(s *Settings) *bool { return &s.PinnedUseHostRegister }).from(2, 2),
	registerThreads.from(2, 2),
	mebibytes("pinned_reserve_segment_size_mb", func(s *Settings) *uint64 { return &s.PinnedReserveSegmentSize },
		"a whole number above 0 (MiB)",
		func(_ Settings, mb uint64) string {
			return unless(mb > 0, "Pinned reserve segment size has to be greater than 0")
		}).from(2, 10),
	boolean("graph_capture_record_stream_reuse", "", func(s *Settings) *bool { return &s.GraphCaptureRecordStreamReuse }).from(2, 9),
	fraction("per_process_memory_fraction", func(s *Settings) *float64 { return &s.PerProcessMemoryFraction },
		"a number from 0 to 1",
		func(x float64) string {
			return unless(x >= 0 && x <= 1, "per_process_memory_fraction is invalid, set it in [0.0, 1.0]")
		}).from(2, 10),
}

// option is one key. Rows of a kind are made by boolean, mebibytes and
// fraction; the others are written out.
type option struct {
	key, alias string
	since      pytorch.Version // the first release that knows the key; 0 for all that are modelled
	// allowed says what values are allowed, given the settings so far.
	allowed func(Settings) string
	// set reads the value and stores it.
	set func(*parser, field) error
	// format writes the value, or "" if it is the one that s has without it.
	format func(s Settings) string
}

// from returns the option with the release that introduced it, as the sources of
// the releases from 2.0 to 2.12 show it.
func (o option) from(major, minor int) option {
	o.since = pytorch.Of(major, minor)
	return o
}

func (o *option) names() []string {
	if o.alias == "" {
		return []string{o.key}
	}
	return []string{o.key, o.alias}
}

// lookup finds the option with that key or alias. Case matters.
func lookup(name string) *option {
	for i := range options {
		if o := &options[i]; name == o.key || o.alias != "" && name == o.alias {
			return o
		}
	}
	return nil
}

func boolean(key, alias string, at func(*Settings) *bool) option {
	return option{
		key: key, alias: alias, allowed: constant("True or False"),
		set: func(p *parser, f field) error {
			v, err := p.readBool(f)
			if err == nil {
				*at(&p.settings) = v
			}
			return err
		},
		format: func(s Settings) string {
			if *at(&s) {
				return "True"
			}
			return ""
		},
	}
}

// mebibytes is a size written in MiB and kept in bytes. check returns PyTorch's
// complaint about a value, or "".
func mebibytes(key string, at func(*Settings) *uint64, allowed string, check func(s Settings, mb uint64) string) option {
	return option{
		key: key,
		allowed: func(s Settings) string {
			if allowed == atLeastLargeSegment {
				return fmt.Sprintf(allowed, s.LargeSegmentSize/mib)
			}
			return allowed
		},
		set: func(p *parser, f field) error {
			mb, err := p.readUint(f)
			if err != nil {
				return err
			}
			if complaint := check(p.settings, mb); complaint != "" {
				return p.refuse(f, complaint)
			}
			*at(&p.settings) = min(mb, capMiB) * mib
			return nil
		},
		format: func(s Settings) string {
			unset := Default()
			unset.MaxNonSplitRounding = s.LargeSegmentSize
			if v := *at(&s); v != *at(&unset) {
				return strconv.FormatUint(v/mib, 10)
			}
			return ""
		},
	}
}

const atLeastLargeSegment = "a whole number of at least %d (MiB, the large segment size)"

func tooSmall(key string) func(Settings, uint64) string {
	return func(s Settings, mb uint64) string {
		least := s.LargeSegmentSize / mib
		return unless(mb >= least, fmt.Sprintf("CachingAllocator option %s too small, must be >= %d", key, least))
	}
}

// fraction is a number in an interval that check knows; it must refuse NaN.
func fraction(key string, at func(*Settings) *float64, allowed string, check func(float64) string) option {
	return option{
		key: key, allowed: constant(allowed),
		set: func(p *parser, f field) error {
			x, err := p.readFloat(f)
			if err != nil {
				return err
			}
			if complaint := check(x); complaint != "" {
				return p.refuse(f, complaint)
			}
			*at(&p.settings) = x + 0 // -0 becomes 0
			return nil
		},
		format: func(s Settings) string {
			unset := Default()
			if x := *at(&s); x != *at(&unset) {
				return strconv.FormatFloat(x, 'g', -1, 64)
			}
			return ""
		},
	}
}

var backend = option{
	key: "backend", allowed: constant(Native + " or " + CudaMallocAsync + ", and no change while the program runs"),
	set: func(p *parser, f field) error {
		name := p.tokens[f.at]
		if name != Native && name != CudaMallocAsync {
			return p.refuse(f, "Unknown allocator backend, options are native and cudaMallocAsync")
		}
		if p.running && name != p.settings.Backend {
			e := p.refuse(f, "Allocator backend parsed at runtime != allocator backend parsed at load time, "+name+" != "+p.settings.Backend)
			e.Kind = RuntimeError
			e.fault = fmt.Sprintf("%q differs from %q, with which the program started", name, p.settings.Backend)
			return e
		}
		p.settings.Backend = name
		return nil
	},
	format: func(s Settings) string {
		if s.Backend == Native {
			return ""
		}
		return s.Backend
	},
}

var registerThreads = option{
	key: "pinned_num_register_threads", allowed: constant("a power of two up to 128"),
	set: func(p *parser, f field) error {
		n, err := p.readUint(f)
		switch {
		case err != nil:
			return err
		case !isPowerOf2(n):
			return p.refuse(f, fmt.Sprintf("Number of register threads has to be power of 2, got %d", n))
		case n > 128:
			return p.refuse(f, fmt.Sprintf("Number of register threads should be less than or equal to 128, got %d", n))
		}
		p.settings.PinnedNumRegisterThreads = n
		return nil
	},
	format: func(s Settings) string {
		if s.PinnedNumRegisterThreads == 1 {
			return ""
		}
		return strconv.FormatUint(s.PinnedNumRegisterThreads, 10)
	},
}

func constant(text string) func(Settings) string { return func(Settings) string { return text } }

func unless(ok bool, complaint string) string {
	if ok {
		return ""
	}
	return complaint
}
