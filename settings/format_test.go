package settings

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestString(t *testing.T) {
	for _, tt := range []struct{ conf, want string }{
		{"", ""},
		{"expandable_segments:False,backend:native,per_process_memory_fraction:1", ""},
		{"expandable_segments:True,max_split_size_mb:128", "max_split_size_mb:128,expandable_segments:True"},
		{"large_segment_size_mb:32,max_non_split_rounding_mb:32", "large_segment_size_mb:32"},
		{"large_segment_size_mb:32,max_non_split_rounding_mb:50", "large_segment_size_mb:32,max_non_split_rounding_mb:50"},
		{"max_split_size_mb:-1", "max_split_size_mb:17592186044415"},
		{"garbage_collection_threshold:.80", "garbage_collection_threshold:0.8"},
		{"garbage_collection_threshold:0.00001", "garbage_collection_threshold:1e-05"},
		{"per_process_memory_fraction:-0", "per_process_memory_fraction:0"},
		{"release_lock_on_hipmalloc:True,pinned_use_hip_host_register:True", "release_lock_on_cudamalloc:True,pinned_use_cuda_host_register:True"},
		{"roundup_power2_divisions:[131072:4]", "roundup_power2_divisions:4"},
		{"roundup_power2_divisions:[64:8,256:4,>:2]", "roundup_power2_divisions:[64:8,256:4,>:2]"},
		{"roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]"},
		{"roundup_power2_divisions:[>:4]", "roundup_power2_divisions:[>:4]"},
		{"roundup_power2_divisions:[>:4,2:8]", "roundup_power2_divisions:[2:8,>:4]"},
		{"roundup_power2_divisions:[64:8,128:4,256:4,512:4,1024:2,>:1]", "roundup_power2_divisions:[64:8,>:4,1024:2,>:1]"},
		{"roundup_power2_divisions:4,roundup_power2_divisions:[1:4,64:8]", "roundup_power2_divisions:[32768:4,64:8]"},
		{"roundup_power2_divisions:[1:1,2:2,4:0]", "roundup_power2_divisions:[1:1,2:2]"},
	} {
		s, err := Parse(tt.conf)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.String(); got != tt.want {
			t.Errorf("%s\ngot  %s\nwant %s", tt.conf, got, tt.want)
		}
	}
}

// TestDivisionsShortest writes random lists, reads them, and expects the
// canonical list to mean the same and never to have more entries.
func TestDivisionsShortest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		var entries []string
		for range 1 + rng.IntN(7) {
			key := ">"
			if rng.IntN(3) > 0 {
				key = fmt.Sprint(1 << rng.IntN(16))
			}
			entries = append(entries, fmt.Sprintf("%s:%d", key, []int{0, 1, 2, 4, 16}[rng.IntN(5)]))
		}
		checkDivisions(t, "roundup_power2_divisions:["+strings.Join(entries, ",")+"]")
	}
	for range 2000 { // any table can be written
		var entries []string
		for i := range 16 {
			entries = append(entries, fmt.Sprintf("%d:%d", 1<<i, uint64(1)<<rng.IntN(64)*uint64(rng.IntN(2))))
		}
		checkDivisions(t, "roundup_power2_divisions:["+strings.Join(entries, ",")+"]")
	}
}

func checkDivisions(t *testing.T, conf string) {
	t.Helper()
	s, err := Parse(conf)
	if err != nil {
		t.Fatal(err)
	}
	canonical := s.String()
	if strings.Count(canonical, ":") > strings.Count(conf, ":") {
		t.Fatalf("%s is written longer, as %s", conf, canonical)
	}
	if back, err := Parse(canonical); err != nil || back != s {
		t.Fatalf("%s is written as %s, which reads back as %v, %v", conf, canonical, back, err)
	}
}

// FuzzParse: no text makes the parser panic, errors are complete, and whatever
// settings come out, also beside an error, survive String and Parse.
func FuzzParse(f *testing.F) {
	for _, tt := range accepted {
		f.Add(tt.conf, "")
		f.Add("expandable_segments:True,large_segment_size_mb:64", tt.conf)
	}
	for _, tt := range refused {
		f.Add(tt.conf, "max_split_size_mb:32")
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		s, err := Parse(first)
		checkRoundTrip(t, s, err)
		s, err = s.Apply(second)
		checkRoundTrip(t, s, err)
	})
}

func checkRoundTrip(t *testing.T, s Settings, err error) {
	t.Helper()
	if err != nil {
		if e := err.(*Error); e.Key == "" || e.Allowed == "" || e.Kind == "" || e.PyTorch == "" || e.Pos < 0 {
			t.Fatalf("incomplete error %+v", *e)
		}
	}
	text := s.String()
	back, err := Parse(text)
	if err != nil || back != s {
		t.Fatalf("%+v is written as %s, which reads back as %+v, %v", s, text, back, err)
	}
	if again := back.String(); again != text {
		t.Fatalf("%s is written again as %s", text, again)
	}
}

func BenchmarkString(b *testing.B) {
	s, err := Parse("max_split_size_mb:128,roundup_power2_divisions:[64:8,256:4,>:2]")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		_ = s.String()
	}
}
