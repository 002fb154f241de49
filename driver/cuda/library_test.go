//go:build linux

package cuda_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/cuda/cudatest"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// TestOpenFails: every way in which there is no GPU gives one line that says
// what is wrong and what to do.
func TestOpenFails(t *testing.T) {
	fake := cudatest.Build(t)
	for _, tt := range []struct {
		name string
		env  map[string]string
		want error
		says []string
	}{
		{
			"no library",
			map[string]string{"ASHLAR_LIBCUDA": filepath.Join(t.TempDir(), "libcuda.so.1")},
			cuda.ErrNoDriver,
			[]string{"no NVIDIA driver", "libcuda.so.1", "correct it, or unset it"},
		},
		{
			"not libcuda", // a library that is loaded anyway
			map[string]string{"ASHLAR_LIBCUDA": "libc.so.6"},
			cuda.ErrOldDriver,
			[]string{"too old", "libc.so.6 (named by ASHLAR_LIBCUDA) has no cuInit", "440 (CUDA 10.2)"},
		},
		{
			"no device",
			map[string]string{"ASHLAR_LIBCUDA": fake, "FAKECUDA_INIT": "100"},
			cuda.ErrNoDevice,
			[]string{"no GPU", "(named by ASHLAR_LIBCUDA)", "nvidia-smi -L"},
		},
		{
			"stub",
			map[string]string{"ASHLAR_LIBCUDA": fake, "FAKECUDA_INIT": "34"},
			cuda.ErrNoDriver,
			[]string{"stub", "(named by ASHLAR_LIBCUDA)"},
		},
		{
			"broken",
			map[string]string{"ASHLAR_LIBCUDA": fake, "FAKECUDA_INIT": "3"},
			nil,
			[]string{"does not start", "(named by ASHLAR_LIBCUDA)", "cuInit", "CUDA_ERROR_NOT_INITIALIZED, code 3", "nvidia-smi"},
		},
		{
			"hidden",
			map[string]string{"ASHLAR_LIBCUDA": fake, "CUDA_VISIBLE_DEVICES": "-1"},
			cuda.ErrNoDevice,
			[]string{`CUDA_VISIBLE_DEVICES="-1" hides`},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for k, v := range tt.env {
				t.Setenv(k, v)
			}
			l, err := cuda.Open()
			if l != nil || err == nil || (tt.want != nil && !errors.Is(err, tt.want)) {
				t.Fatalf("got %v, %v; want %v", l, err, tt.want)
			}
			for _, part := range tt.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not say %q: %v", part, err)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

// TestVisibleDevices: CUDA counts the GPUs that the environment shows, and
// NVML must be asked about the same ones.
func TestVisibleDevices(t *testing.T) {
	lib := cudatest.Use(t, "FAKECUDA_DEVICES=3", "CUDA_VISIBLE_DEVICES=2,0", "FAKECUDA_MEMORY=0x100000000")
	l, err := cuda.Open()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := l.Devices(); n != 2 || err != nil {
		t.Fatalf("%d devices, %v; want 2", n, err)
	}
	if v := l.Version().String(); v != "13.0" || l.Path() != lib.Path {
		t.Errorf("version %s of %s, want 13.0 of %s", v, l.Path(), lib.Path)
	}
	info, err := l.Info(0)
	want := cuda.Info{
		Index: 0, Name: "Stand-in GPU", UUID: "GPU-a2a2a2a2-a2a2-a2a2-a2a2-a2a2a2a2a2a2", PCIBusID: "0000:1B:00.0",
		Major: 9, Multiprocessors: 4, TotalMemory: 4 * gib, VirtualMemory: true, RDMA: true, MemoryPools: true, Managed: true, PageFaults: true,
	}
	if info != want || err != nil {
		t.Errorf("got %+v, %v\nwant %+v", info, err, want)
	}
	if _, err := l.Device(2); !errors.Is(err, cuda.ErrNoDevice) {
		t.Errorf("device 2 of 2: %v", err)
	}
	d, err := l.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	for n, used := range []uint64{300 * mib, 0} { // only the first has a context
		if u, err := l.Usage(n); u.Used != used || u.Total != 4*gib || !u.Utilization || u.GPUBusy != 25 || err != nil {
			t.Errorf("usage of %d: %+v, %v; want %d bytes used", n, u, err, used)
		}
	}
}

func TestContextCost(t *testing.T) {
	for _, tt := range []struct {
		name    string
		unknown bool // NVML does not tell what a process holds
	}{{"by process", false}, {"by device", true}} {
		t.Run(tt.name, func(t *testing.T) {
			lib := cudatest.Use(t, "FAKECUDA_CONTEXT=123456789", "FAKECUDA_OTHERS=1000000")
			l, err := cuda.Open()
			if err != nil {
				t.Fatal(err)
			}
			lib.Processes(1, tt.unknown)
			if cost, err := l.ContextCost(0); cost != 123456789 || err != nil {
				t.Errorf("got %d, %v", cost, err)
			}
			if n := lib.Count("contexts"); n != 0 {
				t.Errorf("%d contexts left behind", n)
			}
			d, err := l.Device(0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.ContextCost(0); !errors.Is(err, cuda.ErrContextExists) {
				t.Errorf("with a context: %v", err)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestProcesses(t *testing.T) {
	lib := cudatest.Use(t)
	d := cudatest.Device(t, lib)
	var _ driver.ProcessLister = d
	lib.Processes(200, false) // more than the first list has room for
	all, err := d.Processes()
	if err != nil || len(all) != 201 {
		t.Fatalf("%d processes, %v; want 201", len(all), err)
	}
	if p := all[200]; !p.Self || p.Used != 300*mib {
		t.Errorf("this process: %+v", p)
	}
	if p := all[7]; p.Self || p.PID != 8 || p.Used != gib {
		t.Errorf("another process: %+v", p)
	}
	lib.Processes(1, true)
	if all, err := d.Processes(); err == nil || len(all) != 0 {
		t.Errorf("memory that NVML does not know was reported: %v, %v", all, err)
	}
}

// TestMonitor: NVML alone sees all GPUs of the machine.
func TestMonitor(t *testing.T) {
	lib := cudatest.Use(t, "FAKECUDA_DEVICES=3", "CUDA_VISIBLE_DEVICES=2", "FAKECUDA_MEMORY=0x100000000", "FAKECUDA_OTHERS=1000000")
	m, err := cuda.OpenMonitor()
	if err != nil {
		t.Fatal(err)
	}
	gpus, err := m.GPUs()
	if err != nil || len(gpus) != 3 {
		t.Fatalf("%v, %v", gpus, err)
	}
	if want := (cuda.MonitoredGPU{Index: 1, Name: "Stand-in GPU", UUID: "GPU-a1a1a1a1-a1a1-a1a1-a1a1-a1a1a1a1a1a1"}); gpus[1] != want {
		t.Errorf("got %+v, want %+v", gpus[1], want)
	}
	lib.Processes(2, false)
	all, err := m.Processes(gpus[1])
	if err != nil || len(all) != 2 || all[1] != (driver.Process{PID: 2, Used: gib}) {
		t.Errorf("processes: %v, %v", all, err)
	}
	if u, err := m.Usage(gpus[1]); err != nil || u.Total != 4*gib || u.Used != 1000000 {
		t.Errorf("usage: %+v, %v", u, err)
	}
	t.Setenv("ASHLAR_LIBNVML", "/nowhere/libnvidia-ml.so.1")
	if _, err := cuda.OpenMonitor(); err == nil || !strings.Contains(err.Error(), "/nowhere") {
		t.Errorf("without NVML: %v", err)
	}
}

// TestWithoutNVML: the driver works, only the list of processes is missing.
func TestWithoutNVML(t *testing.T) {
	lib := cudatest.Use(t, "ASHLAR_LIBNVML=/nowhere/libnvidia-ml.so.1")
	d := cudatest.Device(t, lib)
	for range 2 {
		if _, err := d.Processes(); err == nil || !strings.Contains(err.Error(), "NVML") {
			t.Errorf("got %v", err)
		}
	}
	addr, err := d.Malloc(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Free(addr, 1); err != nil {
		t.Error(err)
	}
}

// TestExiting: while the process exits every call fails in a way that can be
// told from all others.
func TestExiting(t *testing.T) {
	lib := cudatest.Use(t)
	l, err := cuda.Open()
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	addr, err := d.Malloc(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	lib.Exit()
	if err := d.Free(addr, 1); !errors.Is(err, cuda.ErrExiting) || errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("got %v", err)
	}
}

func TestClosed(t *testing.T) {
	lib := cudatest.Use(t)
	l, err := cuda.Open()
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.RecordEvent(0, 0); err != nil { // an event in use goes with the device
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if n := lib.Count("events") + lib.Count("contexts"); n != 0 {
		t.Errorf("%d events and contexts left behind", n)
	}
	if _, err := d.Malloc(1, 0); !errors.Is(err, cuda.ErrClosed) {
		t.Errorf("Malloc: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}
