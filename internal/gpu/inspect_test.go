//go:build linux

package gpu

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/cuda/cudatest"
)

func mustOpen(t *testing.T) *cuda.Library {
	t.Helper()
	lib, err := cuda.Open()
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

// What is said about one device that nobody uses.
func TestLook(t *testing.T) {
	fake := cudatest.Use(t, "FAKECUDA_MEMORY=4294967296")
	info, err := Inspect(mustOpen(t), Idle)
	if err != nil {
		t.Fatal(err)
	}
	context, gpuBusy, memoryBusy, version := uint64(300<<20), 0.25, 0.05, "580.0.0"
	want := &Info{DriverVersion: &version, CUDAVersion: "13.0", Notes: []string{}, Devices: []Device{{
		Card: Card{
			Name: "Stand-in GPU", UUID: "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0", PCIBusID: "0000:19:00.0", ComputeCapability: "9.0",
			Multiprocessors: 4, TotalBytes: 4 << 30,
		},
		Driver:         &Memory{4 << 30, 4<<30 - context, context},
		NVML:           &Memory{4 << 30, 4 << 30, 0},
		GPUUtilisation: &gpuBusy, MemoryUtilisation: &memoryBusy, ContextBytes: &context,
		Processes: []Process{}, Notes: []string{},
	}}}
	if diff := cmp.Diff(want, info); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if n := fake.Count("contexts"); n != 0 {
		t.Errorf("%d contexts are left", n)
	}
}

// Where a context could hurt none is made.
func TestLookContext(t *testing.T) {
	const gone = "/no/such/libnvidia-ml.so"
	for _, tt := range []struct {
		name     string
		settings []string
		prepare  func(*cudatest.Library)
		when     When
		made     bool
		why      string // no context cost is known
		note     string
	}{
		{name: "idle", when: Idle, made: true},
		{name: "never", when: Never, why: "no context was made"},
		{name: "in use", prepare: func(l *cudatest.Library) { l.Processes(2, false) }, when: Idle, why: "in use"},
		{name: "in use, always", prepare: func(l *cudatest.Library) { l.Processes(2, false) }, when: Always, made: true},
		{name: "little free", settings: []string{"FAKECUDA_OTHERS=5368709120"}, when: Idle, why: "only 3.00 GiB is free"},
		{name: "users unknown", prepare: func(l *cudatest.Library) { l.Processes(1, true) }, when: Idle, why: "who uses the device is unknown", note: "does not tell"},
		{name: "no NVML", settings: []string{"ASHLAR_LIBNVML=" + gone}, when: Idle, made: true, why: "NVML", note: "NVML"},
		{name: "no NVML, never", settings: []string{"ASHLAR_LIBNVML=" + gone}, when: Never, why: "no context was made", note: "NVML"},
		{
			name: "no room", prepare: func(l *cudatest.Library) { l.Fail("cuDevicePrimaryCtxRetain", 1, 2) },
			when: Always, made: true, why: "out of memory",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fake := cudatest.Use(t, tt.settings...)
			if tt.prepare != nil {
				tt.prepare(fake)
			}
			info, err := Inspect(mustOpen(t), tt.when)
			if err != nil {
				t.Fatal(err)
			}
			d := info.Devices[0]
			if (d.Driver != nil) != tt.made {
				t.Errorf("a context was made: %v", d.Driver != nil)
			}
			if tt.why == "" && (d.ContextBytes == nil || *d.ContextBytes != 300<<20 || d.ContextNotMeasured != nil) {
				t.Errorf("%v, %v", d.ContextBytes, d.ContextNotMeasured)
			}
			if tt.why != "" && (d.ContextBytes != nil || d.ContextNotMeasured == nil || !strings.Contains(*d.ContextNotMeasured, tt.why)) {
				t.Errorf("%v, %v", d.ContextBytes, d.ContextNotMeasured)
			}
			if notes := strings.Join(d.Notes, "\n"); tt.note == "" && notes != "" || !strings.Contains(notes, tt.note) {
				t.Errorf("notes %q", d.Notes)
			}
			if n := fake.Count("contexts"); n != 0 {
				t.Errorf("%d contexts are left", n)
			}
		})
	}
}

func TestLookDevices(t *testing.T) {
	fake := cudatest.Use(t, "FAKECUDA_DEVICES=2")
	t.Setenv("CUDA_VISIBLE_DEVICES", "0,1")
	fake.Processes(2, false)
	info, err := Inspect(mustOpen(t), Never)
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Devices) != 2 || info.Devices[1].Index != 1 || info.Devices[0].UUID == info.Devices[1].UUID {
		t.Errorf("%+v", info.Devices)
	}
	if len(info.Notes) != 1 || !strings.Contains(info.Notes[0], "CUDA_VISIBLE_DEVICES=0,1") {
		t.Errorf("%q", info.Notes)
	}
	list := info.Devices[0].Processes
	if len(list) != 2 || list[0].PID != 1 || *list[0].UsedBytes != 1<<30 || list[0].Self {
		t.Errorf("%+v", list)
	}
}

// Names are those of processes that have a GPU open; another number may be
// somebody else's here.
func TestProcessName(t *testing.T) {
	own := process(driver.Process{PID: os.Getpid(), Used: 7, Self: true})
	if own.Name == nil || *own.Name != filepath.Base(os.Args[0]) || !own.Self || *own.UsedBytes != 7 {
		t.Errorf("%+v", own)
	}
	if other := process(driver.Process{PID: os.Getpid()}); other.Name != nil {
		t.Errorf("a process without a GPU is called %s", *other.Name)
	}
	if gone := process(driver.Process{PID: 1 << 30}); gone.Name != nil {
		t.Errorf("no process is called %s", *gone.Name)
	}
}
