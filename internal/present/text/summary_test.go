package text

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The side files hold memory_stats() and memory_summary() of real runs, taken
// at the same moment.
func TestMemorySummaryIsPyTorchs(t *testing.T) {
	files, err := filepath.Glob("testdata/*.side.json")
	if err != nil || len(files) < 3 {
		t.Fatalf("side files: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var side struct {
				Stats   map[string]int64 `json:"memory_stats"`
				Summary string           `json:"memory_summary"`
			}
			if err := json.Unmarshal(data, &side); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(side.Summary, MemorySummary(side.Stats, 0, false)); diff != "" {
				t.Errorf("-PyTorch +ashlar:\n%s", diff)
			}
		})
	}
}

func TestMemorySummaryAbbreviated(t *testing.T) {
	full := MemorySummary(map[string]int64{"num_ooms": 3, "active.all.peak": 12}, 7, false)
	short := MemorySummary(map[string]int64{"num_ooms": 3, "active.all.peak": 12}, 7, true)
	var want []string
	for l := range strings.Lines(full) {
		if !strings.Contains(l, " from ") {
			want = append(want, l)
		}
	}
	if diff := cmp.Diff(strings.Join(want, ""), short); diff != "" {
		t.Errorf("-full without pools +abbreviated:\n%s", diff)
	}
	for l := range strings.Lines(full) {
		if len(l) != summaryWidth+3 {
			t.Errorf("%d wide: %q", len(l)-1, l)
		}
	}
	for _, part := range []string{"device ID 7 ", "CUDA OOMs: 3 "} {
		if !strings.Contains(short, part) {
			t.Errorf("no %q in\n%s", part, short)
		}
	}
}

func TestSummaryUnits(t *testing.T) {
	const ki = 1024
	tests := []struct {
		got, want string
	}{
		{summarySize(768*ki-1, 768*ki-1), "786431 B  "},
		{summarySize(768*ki, 768*ki), "   768 KiB"},
		{summarySize(768*ki*ki-1, 768*ki*ki-1), "786431 KiB"},
		{summarySize(768*ki*ki, 768*ki*ki), "   768 MiB"},
		{summarySize(0, 768*ki*ki), "     0 MiB"},
		{summarySize(1<<62, 1<<62), "  4096 PiB"},
		{summarySize(-1, 768*ki), "    -1 KiB"}, // Python's // rounds down
		{summarySize(-2*ki, 768*ki), "    -2 KiB"},
		{summaryCount(749_999, 749_999), " 749999   "},
		{summaryCount(750_000, 750_000), "    750 K "},
		{summaryCount(750_000_000, 750_000_000), "    750 M "},
		{summaryCount(7_500_000_000_000, 7_500_000_000_000), "7500000 M "},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func ExampleMemorySummary() {
	stats := map[string]int64{"num_ooms": 1, "allocated_bytes.all.current": 5 << 30}
	for l := range strings.Lines(MemorySummary(stats, 0, true)) {
		if strings.Contains(l, "OOMs") || strings.Contains(l, "Allocated memory") {
			fmt.Print(l)
		}
	}
	// Output:
	// |            CUDA OOMs: 1            |        cudaMalloc retries: 0         |
	// | Allocated memory      |   5120 MiB |      0 B   |      0 B   |      0 B   |
}
