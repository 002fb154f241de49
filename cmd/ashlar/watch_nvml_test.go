package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/driver/cuda/cudatest"
	"github.com/ashlar-mem/ashlar/internal/watch"
)

func TestLookUp(t *testing.T) {
	proc := t.TempDir()
	for _, c := range []struct {
		pid, cmdline, stat string
		name               string
		started            int64
	}{
		{"1", "/usr/bin/python3\x00-u\x00/home/me/train.py\x00--fast\x00", "1 (a b) c) S 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 4711 0 0", "train.py", 4711},
		{"2", "/opt/serve\x00", "", "serve", 0},
		{"3", "", "3 (x) S", "pid 3", 0},
	} {
		dir := filepath.Join(proc, c.pid)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"cmdline": c.cmdline, "stat": c.stat} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if name, started := lookUp(proc, int(c.pid[0]-'0')); name != c.name || started != c.started {
			t.Errorf("%s: %s, %d", c.pid, name, started)
		}
	}
	if name, _ := lookUp(proc, 9); name != "pid 9" {
		t.Error(name)
	}
}

// The processes on all GPUs come from NVML, and nothing comes without it.
func TestOutsiders(t *testing.T) {
	lib := cudatest.Use(t, "FAKECUDA_DEVICES=2")
	lib.Processes(1, false)
	list := (&watchOptions{}).outsiders()
	if list == nil {
		t.Fatal("there is no NVML")
	}
	all, err := list()
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	if p := all[1]; p.PID != 1 || p.Used != 1<<30 || !strings.HasPrefix(p.GPU.UUID, "GPU-a1") || p.GPU.Index != 1 || p.GPU.Total != 8<<30 || p.Free != 8<<30 {
		t.Errorf("%+v", p)
	}
	var without []func() ([]watch.Process, error)
	without = append(without, (&watchOptions{noNVML: true}).outsiders())
	t.Setenv("ASHLAR_LIBNVML", "/nowhere")
	without = append(without, (&watchOptions{}).outsiders())
	for i, list := range without {
		if list != nil {
			t.Errorf("%d: there is a list", i)
		}
	}
}
