package settings

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// with returns the defaults after a change.
func with(change func(*Settings)) Settings {
	s := Default()
	change(&s)
	return s
}

func table(entries ...uint64) (t [16]uint64) {
	copy(t[:], entries)
	return t
}

func all(n uint64) (t [16]uint64) {
	fill(t[:], n)
	return t
}

// accepted holds texts that are read without an error. It also seeds the fuzzer.
var accepted = []struct {
	conf string
	want Settings
}{
	{"", Default()},
	{" \t\n\v\f\r", Default()},

	// Every key.
	{"large_segment_size_mb:11", with(func(s *Settings) { s.LargeSegmentSize, s.MaxNonSplitRounding = 11*mib, 11*mib })},
	{"large_segment_size_mb:20", Default()},
	{"max_split_size_mb:20", with(func(s *Settings) { s.MaxSplitSize = 20 * mib })},
	{"max_non_split_rounding_mb:21", with(func(s *Settings) { s.MaxNonSplitRounding = 21 * mib })},
	{"garbage_collection_threshold:0.5", with(func(s *Settings) { s.GarbageCollectionThreshold = 0.5 })},
	{"roundup_power2_divisions:4", with(func(s *Settings) { s.RoundupPower2Divisions = all(4) })},
	{"expandable_segments:True", with(func(s *Settings) { s.ExpandableSegments = true })},
	{"expandable_segments:False", Default()},
	{"pinned_use_background_threads:True", with(func(s *Settings) { s.PinnedUseBackgroundThreads = true })},
	{"backend:native", Default()},
	{"backend:cudaMallocAsync", with(func(s *Settings) { s.Backend = CudaMallocAsync })},
	{"release_lock_on_cudamalloc:True", with(func(s *Settings) { s.ReleaseLockOnMalloc = true })},
	{"release_lock_on_hipmalloc:True", with(func(s *Settings) { s.ReleaseLockOnMalloc = true })},
	{"pinned_use_cuda_host_register:True", with(func(s *Settings) { s.PinnedUseHostRegister = true })},
	{"pinned_use_hip_host_register:True", with(func(s *Settings) { s.PinnedUseHostRegister = true })},
	{"pinned_num_register_threads:8", with(func(s *Settings) { s.PinnedNumRegisterThreads = 8 })},
	{"pinned_num_register_threads:128", with(func(s *Settings) { s.PinnedNumRegisterThreads = 128 })},
	{"pinned_reserve_segment_size_mb:1", with(func(s *Settings) { s.PinnedReserveSegmentSize = mib })},
	{"graph_capture_record_stream_reuse:True", with(func(s *Settings) { s.GraphCaptureRecordStreamReuse = true })},
	{"per_process_memory_fraction:0.5", with(func(s *Settings) { s.PerProcessMemoryFraction = 0.5 })},
	{"per_process_memory_fraction:0", with(func(s *Settings) { s.PerProcessMemoryFraction = 0 })},
	{"per_process_memory_fraction:1.0", Default()},

	// Numbers as C reads them, spec 11.2.
	{"max_split_size_mb:21.9", with(func(s *Settings) { s.MaxSplitSize = 21 * mib })},
	{"max_split_size_mb:32;x", with(func(s *Settings) { s.MaxSplitSize = 32 * mib })},
	{"max_split_size_mb:+32", with(func(s *Settings) { s.MaxSplitSize = 32 * mib })},
	{"max_split_size_mb:-1", with(func(s *Settings) { s.MaxSplitSize = 1<<64 - 1<<20 })},
	{"max_split_size_mb:18446744073709551615", with(func(s *Settings) { s.MaxSplitSize = 1<<64 - 1<<20 })},
	{"max_split_size_mb:17592186044415", with(func(s *Settings) { s.MaxSplitSize = 1<<64 - 1<<20 })},
	{"max_split_size_mb:17592186044416", with(func(s *Settings) { s.MaxSplitSize = 1<<64 - 1<<20 })},
	{"garbage_collection_threshold:0x1p-2", with(func(s *Settings) { s.GarbageCollectionThreshold = 0.25 })},
	{"garbage_collection_threshold:5e-1rest", with(func(s *Settings) { s.GarbageCollectionThreshold = 0.5 })},
	{"per_process_memory_fraction:-0.0", with(func(s *Settings) { s.PerProcessMemoryFraction = 0 })},

	// Separators are not checked, white space does not separate.
	{"expandable_segments,True", with(func(s *Settings) { s.ExpandableSegments = true })},
	{"expandable_segments]True", with(func(s *Settings) { s.ExpandableSegments = true })},
	{"max_split_size_mb:32,", with(func(s *Settings) { s.MaxSplitSize = 32 * mib })},
	{"max_split_size_mb:32:garbage_collection_threshold:0.5", with(func(s *Settings) {
		s.MaxSplitSize, s.GarbageCollectionThreshold = 32*mib, 0.5
	})},
	{" max_split_size_mb : 3 2 , garbage_collection_threshold : 0 . 5 ", with(func(s *Settings) {
		s.MaxSplitSize, s.GarbageCollectionThreshold = 32*mib, 0.5
	})},

	// Later keys win; large_segment_size_mb is read first wherever it stands.
	{"max_split_size_mb:32,max_split_size_mb:64", with(func(s *Settings) { s.MaxSplitSize = 64 * mib })},
	{"max_split_size_mb:15,large_segment_size_mb:12", with(func(s *Settings) {
		s.LargeSegmentSize, s.MaxNonSplitRounding, s.MaxSplitSize = 12*mib, 12*mib, 15*mib
	})},
	{"max_non_split_rounding_mb:50,large_segment_size_mb:40", with(func(s *Settings) {
		s.LargeSegmentSize, s.MaxNonSplitRounding = 40*mib, 50*mib
	})},
	{"roundup_power2_divisions:[1:2,2:4],large_segment_size_mb:40", with(func(s *Settings) {
		s.LargeSegmentSize, s.MaxNonSplitRounding, s.RoundupPower2Divisions = 40*mib, 40*mib, table(2, 4)
	})},

	// roundup_power2_divisions, spec 11.4.
	{"roundup_power2_divisions:1", with(func(s *Settings) { s.RoundupPower2Divisions = all(1) })},
	{"roundup_power2_divisions:[]", Default()},
	{"roundup_power2_divisions:[64:8,256:4,>:2]", with(func(s *Settings) {
		s.RoundupPower2Divisions = table(8, 8, 8, 8, 8, 8, 8, 0, 4, 2, 2, 2, 2, 2, 2, 2)
	})},
	{"roundup_power2_divisions:[>:4]", with(func(s *Settings) {
		s.RoundupPower2Divisions = table(0, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4)
	})},
	{"roundup_power2_divisions:[131072:2]", with(func(s *Settings) { s.RoundupPower2Divisions = all(2) })},
	{"roundup_power2_divisions:[4:0]", Default()},
	{"roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", with(func(s *Settings) {
		s.RoundupPower2Divisions = table(1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8)
	})},
	{"roundup_power2_divisions:[1:2,4:4,32:8,>:16]", with(func(s *Settings) {
		s.RoundupPower2Divisions = table(2, 0, 4, 0, 0, 8, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16)
	})},
	{"roundup_power2_divisions:[256:4,64:8]", with(func(s *Settings) { // only the first key fills downwards
		s.RoundupPower2Divisions = table(4, 4, 4, 4, 4, 4, 8, 4, 4)
	})},
	{"roundup_power2_divisions:[>:4,2:8]", with(func(s *Settings) {
		s.RoundupPower2Divisions = table(8, 8, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4)
	})},
	{"roundup_power2_divisions:4,roundup_power2_divisions:[2:8]", with(func(s *Settings) { // a list does not clear
		s.RoundupPower2Divisions = table(8, 8, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4)
	})},
	{"roundup_power2_divisions:[32768:2,>:4]", with(func(s *Settings) { s.RoundupPower2Divisions = all(2) })},
	{"roundup_power2_divisions:[2:8,],expandable_segments:True", with(func(s *Settings) {
		s.RoundupPower2Divisions, s.ExpandableSegments = table(8, 8), true
	})},
	{"roundup_power2_divisions:[1]2],expandable_segments:True", with(func(s *Settings) {
		s.RoundupPower2Divisions, s.ExpandableSegments = table(2), true
	})},
}

func TestParse(t *testing.T) {
	for _, tt := range accepted {
		t.Run(tt.conf, func(t *testing.T) {
			got, err := Parse(tt.conf)
			if err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// refused holds texts with an error: what it says and what stays in force.
var refused = []struct {
	conf       string
	kind       Kind
	key, value string
	pos        int
	pytorch    string
	left       Settings
}{
	{
		"large_segment_size_mb:10", ValueError, "large_segment_size_mb", "10", 2,
		"CachingAllocator option large_segment_size_mb must be > 10 MB", Default(),
	},
	{
		"max_split_size_mb:19", ValueError, "max_split_size_mb", "19", 2,
		"CachingAllocator option max_split_size_mb too small, must be >= 20", Default(),
	},
	{
		"max_split_size_mb:30,large_segment_size_mb:40", ValueError, "max_split_size_mb", "30", 2,
		"CachingAllocator option max_split_size_mb too small, must be >= 40",
		with(func(s *Settings) { s.LargeSegmentSize, s.MaxNonSplitRounding = 40*mib, 40*mib }),
	},
	{
		"max_non_split_rounding_mb:10", ValueError, "max_non_split_rounding_mb", "10", 2,
		"CachingAllocator option max_non_split_rounding_mb too small, must be >= 20", Default(),
	},
	{"max_split_size_mb:abc", ValueError, "max_split_size_mb", "abc", 2, "stoull", Default()},
	{"max_split_size_mb:--1", ValueError, "max_split_size_mb", "--1", 2, "stoull", Default()},
	{"max_split_size_mb::32", ValueError, "max_split_size_mb", ":", 2, "stoull", Default()},
	{"max_split_size_mb:99999999999999999999", IndexError, "max_split_size_mb", "99999999999999999999", 2, "stoull", Default()},
	{
		"max_split_size_mb:0x20", ValueError, "max_split_size_mb", "0x20", 2,
		"CachingAllocator option max_split_size_mb too small, must be >= 20", Default(),
	},
	{"max_split_size_mb", RuntimeError, "max_split_size_mb", "", 1, "Index out of bounds in ConfigTokenizer", Default()},
	{"max_split_size_mb:", RuntimeError, "max_split_size_mb", "", 2, "Index out of bounds in ConfigTokenizer", Default()},
	{"large_segment_size_mb:", RuntimeError, "large_segment_size_mb", "", 2, "Index out of bounds in ConfigTokenizer", Default()},

	{"garbage_collection_threshold:0", ValueError, "garbage_collection_threshold", "0", 2, badThreshold, Default()},
	{"garbage_collection_threshold:1.0", ValueError, "garbage_collection_threshold", "1.0", 2, badThreshold, Default()},
	{"garbage_collection_threshold:-0.1", ValueError, "garbage_collection_threshold", "-0.1", 2, badThreshold, Default()},
	{"garbage_collection_threshold:nan", ValueError, "garbage_collection_threshold", "nan", 2, badThreshold, Default()},
	{"garbage_collection_threshold:inf", ValueError, "garbage_collection_threshold", "inf", 2, badThreshold, Default()},
	{"garbage_collection_threshold:x", ValueError, "garbage_collection_threshold", "x", 2, "stod", Default()},
	{"garbage_collection_threshold:1e-999", IndexError, "garbage_collection_threshold", "1e-999", 2, "stod", Default()},
	{"per_process_memory_fraction:1.5", ValueError, "per_process_memory_fraction", "1.5", 2, badFraction, Default()},
	{"per_process_memory_fraction:-0.1", ValueError, "per_process_memory_fraction", "-0.1", 2, badFraction, Default()},
	{"per_process_memory_fraction:NaN", ValueError, "per_process_memory_fraction", "NaN", 2, badFraction, Default()},

	{
		"expandable_segments:true", ValueError, "expandable_segments", "true", 2,
		"Expected 'True' or 'False' at index 2 in ConfigTokenizer but got 'true'", Default(),
	},
	{
		"max_split_size_mb:32,expandable_segments:1", ValueError, "expandable_segments", "1", 6,
		"Expected 'True' or 'False' at index 6 in ConfigTokenizer but got '1'",
		with(func(s *Settings) { s.MaxSplitSize = 32 * mib }),
	},
	{
		"release_lock_on_hipmalloc:1", ValueError, "release_lock_on_hipmalloc", "1", 2,
		"Expected 'True' or 'False' at index 2 in ConfigTokenizer but got '1'", Default(),
	},
	{
		"backend:foo", ValueError, "backend", "foo", 2,
		"Unknown allocator backend, options are native and cudaMallocAsync", Default(),
	},
	{
		"pinned_num_register_threads:3", ValueError, "pinned_num_register_threads", "3", 2,
		"Number of register threads has to be power of 2, got 3", Default(),
	},
	{
		"pinned_num_register_threads:0", ValueError, "pinned_num_register_threads", "0", 2,
		"Number of register threads has to be power of 2, got 0", Default(),
	},
	{
		"pinned_num_register_threads:256", ValueError, "pinned_num_register_threads", "256", 2,
		"Number of register threads should be less than or equal to 128, got 256", Default(),
	},
	{
		"pinned_reserve_segment_size_mb:0", ValueError, "pinned_reserve_segment_size_mb", "0", 2,
		"Pinned reserve segment size has to be greater than 0", Default(),
	},

	{
		"roundup_power2_divisions:3", ValueError, "roundup_power2_divisions", "3", 2,
		"For roundups, the divisions has to be power of 2 ", Default(),
	},
	{
		"roundup_power2_divisions:0", ValueError, "roundup_power2_divisions", "0", 2,
		"For roundups, the divisions has to be power of 2 ", Default(),
	},
	{
		"roundup_power2_divisions:[3:2]", ValueError, "roundup_power2_divisions", "3", 3,
		"For roundups, the intervals have to be power of 2 ", Default(),
	},
	{
		"roundup_power2_divisions:[0:2]", ValueError, "roundup_power2_divisions", "0", 3,
		"For roundups, the intervals have to be power of 2 ", Default(),
	},
	{
		"roundup_power2_divisions:[4:3]", ValueError, "roundup_power2_divisions", "3", 5,
		"For roundups, the divisions has to be power of 2 or 0 to disable roundup ", Default(),
	},
	{"roundup_power2_divisions:[x:2]", ValueError, "roundup_power2_divisions", "x", 3, "stoull", Default()},
	{"roundup_power2_divisions:[4:]", ValueError, "roundup_power2_divisions", "]", 5, "stoull", Default()},
	{
		"roundup_power2_divisions:[2:4,8", RuntimeError, "roundup_power2_divisions", "", 8,
		"Index out of bounds in ConfigTokenizer", with(func(s *Settings) { s.RoundupPower2Divisions = table(4, 4) }),
	},
	{
		"roundup_power2_divisions:[256:1,512:2", RuntimeError, "roundup_power2_divisions", "", 10,
		"Index out of bounds in ConfigTokenizer",
		with(func(s *Settings) { s.RoundupPower2Divisions = table(1, 1, 1, 1, 1, 1, 1, 1, 1, 2) }),
	},

	{"bogus", ValueError, "bogus", "", 0, "Unrecognized key 'bogus' in CUDA allocator config.", Default()},
	{",", ValueError, ",", "", 0, "Unrecognized key ',' in CUDA allocator config.", Default()},
	{
		"Expandable_Segments:True", ValueError, "Expandable_Segments", "", 0,
		"Unrecognized key 'Expandable_Segments' in CUDA allocator config.", Default(),
	},
	{
		"expandable_segments False", ValueError, "expandable_segmentsFalse", "", 0,
		"Unrecognized key 'expandable_segmentsFalse' in CUDA allocator config.", Default(),
	},
	{
		"max_split_size_mb=32", ValueError, "max_split_size_mb=32", "", 0,
		"Unrecognized key 'max_split_size_mb=32' in CUDA allocator config.", Default(),
	},
	{
		"max_split_size_mb:32;expandable_segments:False", ValueError, "False", "", 4,
		"Unrecognized key 'False' in CUDA allocator config.", with(func(s *Settings) { s.MaxSplitSize = 32 * mib }),
	},
	{
		"expandable_segments:True,throw_on_cudamalloc_oom:True", ValueError, "throw_on_cudamalloc_oom", "", 4,
		"Unrecognized key 'throw_on_cudamalloc_oom' in CUDA allocator config.",
		with(func(s *Settings) { s.ExpandableSegments = true }),
	},
}

const (
	badThreshold = "garbage_collect_threshold is invalid, set it in (0.0, 1.0)"
	badFraction  = "per_process_memory_fraction is invalid, set it in [0.0, 1.0]"
)

func TestParseRefuses(t *testing.T) {
	for _, tt := range refused {
		t.Run(tt.conf, func(t *testing.T) {
			left, err := Parse(tt.conf)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("error %v, want an *Error", err)
			}
			if e.Kind != tt.kind || e.Key != tt.key || e.Value != tt.value || e.Pos != tt.pos || e.PyTorch != tt.pytorch {
				t.Errorf("got %+v", *e)
			}
			if left != tt.left {
				t.Errorf("left in force %v, want %v", left, tt.left)
			}
			text := err.Error()
			if e.Allowed == "" || !strings.Contains(text, e.Allowed) || !strings.Contains(text, tt.key) ||
				!strings.Contains(text, tt.value) || strings.Contains(text, "\n") {
				t.Errorf("not one line with key, value and what is allowed: %q", text)
			}
		})
	}
}

func TestErrorText(t *testing.T) {
	for _, tt := range []struct{ conf, want string }{
		{"max_split_size_mb:19", `allocator setting "max_split_size_mb": "19" is not allowed; allowed: a whole number of at least 20 (MiB, the large segment size)`},
		{"max_split_size_mb:x", `allocator setting "max_split_size_mb": "x" is not a number; allowed: a whole number of at least 20 (MiB, the large segment size)`},
		{"expandable_segments:", `allocator setting "expandable_segments": the text ends where a value should stand; allowed: True or False`},
		{"roundup_power2_divisions:[4:4", `allocator setting "roundup_power2_divisions": the list has no closing ]; allowed: a power of two, or a list such as [256:1,512:2,>:4]`},
		{"max_split_size_mb=32", `allocator setting "max_split_size_mb=32": unknown key in PyTorch 2.11 (write max_split_size_mb:32); allowed: large_segment_size_mb, `},
		{"expandable_segments=", `(write expandable_segments:VALUE)`},
		{"max_split_size:32", `(did you mean max_split_size_mb?)`},
		{"EXPANDABLE_SEGMENTS:True", `(did you mean expandable_segments?)`},
		{"throw_on_cudamalloc_oom:True", `(it exists only from PyTorch 2.`},
		{"expandable_segments_reserve:0.5", `(it exists only from PyTorch 2.`},
	} {
		if _, err := Parse(tt.conf); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", tt.conf, err, tt.want)
		}
	}
	e := &Error{Key: "backend", Value: "x", Allowed: "native"} // made by hand
	if got, want := e.Error(), `allocator setting "backend": "x" is not allowed; allowed: native`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestApply checks what a parse at run time resets and what it keeps.
func TestApply(t *testing.T) {
	all, err := Parse("large_segment_size_mb:32,max_split_size_mb:64,max_non_split_rounding_mb:48,garbage_collection_threshold:0.5," +
		"roundup_power2_divisions:8,expandable_segments:True,pinned_use_background_threads:True,release_lock_on_cudamalloc:True," +
		"pinned_use_cuda_host_register:True,pinned_num_register_threads:4,pinned_reserve_segment_size_mb:7," +
		"graph_capture_record_stream_reuse:True,per_process_memory_fraction:0.75")
	if err != nil {
		t.Fatal(err)
	}
	reset := all
	reset.MaxSplitSize, reset.MaxNonSplitRounding = None, 32*mib
	reset.GarbageCollectionThreshold, reset.RoundupPower2Divisions = 0, [16]uint64{}
	if got, err := all.Apply(""); err != nil || got != reset {
		t.Errorf("empty text: %v, %v; want %v", got, err, reset)
	}

	larger := reset
	larger.LargeSegmentSize, larger.MaxNonSplitRounding = 40*mib, 40*mib
	if got, err := all.Apply("large_segment_size_mb:40"); err != nil || got != larger {
		t.Errorf("large segments: %v, %v; want %v", got, err, larger)
	}
	// The bound is the large segment size in force.
	if got, err := all.Apply("max_split_size_mb:31"); err == nil || got != reset {
		t.Errorf("below the large segment size: %v, %v; want %v", got, err, reset)
	}
	if got, err := all.Apply("expandable_segments:False,bogus:1"); got.ExpandableSegments || got.MaxSplitSize != None {
		t.Errorf("before the error: %v, %v", got, err)
	} else if e := err.(*Error); e.PyTorch != "Unrecognized key 'bogus' in Accelerator allocator config." {
		t.Errorf("at run time: %q", e.PyTorch)
	}
}

func TestApplyBackend(t *testing.T) {
	if got, err := Default().Apply("backend:native"); err != nil || got != Default() {
		t.Errorf("same backend: %v, %v", got, err)
	}
	got, err := Default().Apply("expandable_segments:True,backend:cudaMallocAsync")
	e, ok := err.(*Error)
	if !ok || e.Kind != RuntimeError || e.Pos != 6 || e.PyTorch !=
		"Allocator backend parsed at runtime != allocator backend parsed at load time, cudaMallocAsync != native" {
		t.Errorf("other backend: %+v", err)
	}
	if got.Backend != Native || !got.ExpandableSegments {
		t.Errorf("left in force: %v", got)
	}
	if want := `allocator setting "backend": "cudaMallocAsync" differs from "native", with which the program started; allowed: native`; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %s", err)
	}
}

func TestFromEnv(t *testing.T) {
	for _, tt := range []struct {
		env            map[string]string
		conf, variable string
	}{
		{nil, "", ""},
		{map[string]string{"PYTORCH_ALLOC_CONF": "a"}, "a", "PYTORCH_ALLOC_CONF"},
		{map[string]string{"PYTORCH_ALLOC_CONF": "a", "PYTORCH_HIP_ALLOC_CONF": "h"}, "h", "PYTORCH_HIP_ALLOC_CONF"},
		{map[string]string{"PYTORCH_ALLOC_CONF": "a", "PYTORCH_CUDA_ALLOC_CONF": "c"}, "c", "PYTORCH_CUDA_ALLOC_CONF"},
		{map[string]string{"PYTORCH_ALLOC_CONF": "a", "PYTORCH_CUDA_ALLOC_CONF": ""}, "", "PYTORCH_CUDA_ALLOC_CONF"},
	} {
		conf, variable := FromEnv(func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok })
		if conf != tt.conf || variable != tt.variable {
			t.Errorf("%v: got %q from %q, want %q from %q", tt.env, conf, variable, tt.conf, tt.variable)
		}
	}
}

func TestNumbers(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, tt := range []struct {
		tok  string
		want float64
		err  error
	}{
		{"1", 1, nil},
		{"+.5", .5, nil},
		{"5.", 5, nil},
		{"-2.5e2x", -250, nil},
		{"1e", 1, nil},
		{"1e+", 1, nil},
		{"1e5e5", 1e5, nil},
		{"0x", 0, nil},
		{"0x.", 0, nil},
		{"0xg", 0, nil},
		{"0x1", 1, nil},
		{"0X.8", .5, nil},
		{"0x1p-1q", .5, nil},
		{"0x1p", 1, nil},
		{"0x1_2", 1, nil},
		{"1_2", 1, nil},
		{"inf", inf, nil},
		{"-Infinity", -inf, nil},
		{"NAN(0)", nan, nil},
		{"0e99999999999", 0, nil},
		{"1e999", 0, errRange},
		{"-1e999", 0, errRange},
		{"1e-999", 0, errRange},
		{"1e-310", 0, errRange},
		{"0x1p-99999", 0, errRange},
		{"", 0, errNoNumber},
		{".", 0, errNoNumber},
		{"-", 0, errNoNumber},
		{"e5", 0, errNoNumber},
		{".e5", 0, errNoNumber},
		{"+-1", 0, errNoNumber},
		{"in", 0, errNoNumber},
		{"x1", 0, errNoNumber},
	} {
		got, err := stod(tt.tok)
		if err != tt.err || err == nil && got != tt.want && !(math.IsNaN(got) && math.IsNaN(tt.want)) {
			t.Errorf("stod(%q) = %v, %v; want %v, %v", tt.tok, got, err, tt.want, tt.err)
		}
	}
	for _, tt := range []struct {
		tok  string
		want uint64
		err  error
	}{
		{"0", 0, nil},
		{"+7", 7, nil},
		{"-1", math.MaxUint64, nil},
		{"-0", 0, nil},
		{"12e3", 12, nil},
		{"0x10", 0, nil},
		{"007", 7, nil},
		{"1_2", 1, nil},
		{"18446744073709551615", math.MaxUint64, nil},
		{"18446744073709551616", 0, errRange},
		{"-18446744073709551616", 0, errRange},
		{"", 0, errNoNumber},
		{"-", 0, errNoNumber},
		{"+-1", 0, errNoNumber},
		{"x", 0, errNoNumber},
		{".5", 0, errNoNumber},
	} {
		if got, err := stoull(tt.tok); err != tt.err || got != tt.want {
			t.Errorf("stoull(%q) = %v, %v; want %v, %v", tt.tok, got, err, tt.want, tt.err)
		}
	}
}
