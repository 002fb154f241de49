package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/internal/watch"
)

// outsiders returns how to list the processes on the GPUs of this machine; nil if
// they are not wanted, or there is no NVML to ask.
func (o *watchOptions) outsiders() func() ([]watch.Process, error) {
	if o.noNVML {
		return nil
	}
	m, err := cuda.OpenMonitor()
	if err != nil {
		return nil
	}
	return func() (all []watch.Process, err error) {
		gpus, err := m.GPUs()
		if err != nil {
			return nil, err
		}
		for _, g := range gpus {
			list, err := m.Processes(g)
			if err != nil {
				return nil, fmt.Errorf("GPU %d: %w", g.Index, err)
			}
			use, err := m.Usage(g)
			if err != nil {
				return nil, fmt.Errorf("GPU %d: %w", g.Index, err)
			}
			card := watch.Device{Index: g.Index, Name: g.Name, UUID: g.UUID, Total: int64(use.Total)}
			for _, p := range list {
				name, started := lookUp("/proc", p.PID)
				all = append(all, watch.Process{PID: p.PID, Name: name, Started: started, GPU: card, Used: int64(p.Used), Free: int64(use.Free)})
			}
		}
		return all, nil
	}
}

// lookUp returns the script or program that a process runs, and when it began, in
// ticks since the machine did. What the system does not tell is left out.
func lookUp(proc string, pid int) (name string, started int64) {
	dir := filepath.Join(proc, strconv.Itoa(pid))
	name = fmt.Sprintf("pid %d", pid)
	line, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // of another's process it may not be told
	words := strings.Split(string(bytes.TrimRight(line, "\x00")), "\x00")
	if words[0] != "" {
		name = filepath.Base(words[0])
	}
	if strings.HasPrefix(name, "python") {
		for _, w := range words[1:] {
			if !strings.HasPrefix(w, "-") {
				name = filepath.Base(w)
				break
			}
		}
	}
	stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
	// The name in parentheses may have spaces; the start is the 20th field behind it.
	if fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])); len(fields) > 19 {
		started, _ = strconv.ParseInt(fields[19], 10, 64)
	}
	return name, started
}
