package plancompare

import (
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// Peaks are those since the last step began; what is there then counts.
func TestThrough(t *testing.T) {
	l := script(t, `
		=build 0
		+w 1000
		=forward 1
		+big 30000000
		-big
		=forward 2
		+x 3000
		-x
	`)
	got, err := Through(l)
	// Requests are rounded to 512 bytes; the segment of the first step's tensor
	// is kept (30 MB in units of 2 MiB), beside a small one of 2 MiB.
	want := Peaks{Requested: 4000, Allocated: 1024 + 3072, Reserved: 30<<20 + 2<<20}
	if err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func TestCheck(t *testing.T) {
	tests := []struct {
		name   string
		events []int32
		want   string
	}{
		{"sound", []int32{0, 1, ^0, ^1}, ""},
		{"freed twice", []int32{0, 1, ^0, ^0}, "event 3 (forward, step 1): tensor #0 is freed twice, first at event 2; 7 bytes of mm in layer"},
		{"freed before its birth", []int32{0, ^1, 1}, "tensor #1 dies before its birth"},
		{"born twice", []int32{0, 0}, "tensor #0 is born twice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := ledger.New()
			l.Begin("forward", 1)
			x := ledger.Tensor{Bytes: 7, Op: l.Name("mm"), Module: l.Name("layer")}
			l.Tensors, l.Events = []ledger.Tensor{x, x}, tt.events
			err := Check(l)
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if _, err := Through(l); err == nil {
				t.Error("the engine ran it")
			}
		})
	}
}

func TestLevel(t *testing.T) {
	whole := Cover{PlannedBytes: 100, RecordedBytes: 100, CommonBytes: 100}
	peaks := Peaks{1000, 1000, 1000}
	tests := []struct {
		name string
		f    Figures
		want Level
	}{
		{"nothing differs", Figures{Planned: peaks, Measured: peaks, LargeScored: whole}, Same},
		{"small things differ", Figures{Planned: peaks, Measured: peaks, LargeScored: whole, Differing: 3}, Exact},
		{"within the bars", Figures{Planned: Peaks{1000, 990, 1060}, Measured: peaks, LargeScored: whole, Differing: 3}, Near},
		{"allocated is off", Figures{Planned: Peaks{1000, 989, 1000}, Measured: peaks, LargeScored: whole, Differing: 3}, Far},
		{"reserved is off", Figures{Planned: Peaks{1000, 1000, 1061}, Measured: peaks, LargeScored: whole, Differing: 3}, Far},
		{"the peaks agree by chance", Figures{Planned: peaks, Measured: peaks, LargeScored: Cover{PlannedBytes: 100, RecordedBytes: 100, CommonBytes: 89}, Differing: 3}, Far},
	}
	for _, tt := range tests {
		if got := tt.f.Level(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	if !Same.Reaches(Near) || Near.Reaches(Exact) || Level("bad").Reaches(Far) {
		t.Error("levels are out of order")
	}
}
