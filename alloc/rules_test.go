package alloc

import (
	"testing"

	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/settings"
)

// TestRound has the vectors of spec 1.2.
func TestRound(t *testing.T) {
	for conf, vectors := range map[string]map[uint64]uint64{
		"": {
			1: 512, 511: 512, 512: 512, 513: 1024, 1000: 1024, 1048575: 1048576,
			1048577: 1049088, 10485248: 10485248, 10485249: 10485760,
		},
		"roundup_power2_divisions:4": {
			600: 1024, 2048: 2048, 2049: 2560, 4097: 5120, 100000: 114688, 1048577: 1310720,
			3145733: 3670016, 34603008: 41943040, 104857600: 117440512,
		},
		"roundup_power2_divisions:8": {
			4096: 4096, 4097: 4608, 100000: 106496, 1048577: 1179648, 104857600: 109051904,
		},
		"roundup_power2_divisions:[64:8,256:4,>:2]": {
			104857600: 109051904, 135266304: 135266304, 314572800: 335544320, 629145600: 805306368,
		},
		"roundup_power2_divisions:[256:1,512:2,1024:4,>:8]": {
			314572800: 314572800, 629145600: 805306368, 1153433600: 1342177280, 2202009600: 2415919104,
		},
	} {
		s, err := settings.Parse(conf)
		if err != nil {
			t.Fatal(err)
		}
		a := New(sim.New(sim.Config{}), WithSettings(s))
		for request, want := range vectors {
			if got := a.round(request); got != want {
				t.Errorf("%q: %d is rounded to %d, want %d", conf, request, got, want)
			}
		}
	}
}

// TestSegmentSize has the vectors of spec 1.3.
func TestSegmentSize(t *testing.T) {
	a := New(sim.New(sim.Config{}))
	for request, want := range map[uint64]uint64{
		1048576: 2 << 20, 1048577: 20 << 20, 10485248: 20 << 20, 10485249: 10 << 20,
		10485761: 12 << 20, 20971521: 22 << 20, 104857607: 102 << 20,
	} {
		if got := a.segmentSize(a.round(request)); got != want {
			t.Errorf("%d gets a segment of %d bytes, want %d", request, got, want)
		}
	}
}
