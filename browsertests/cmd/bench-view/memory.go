package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// renderer is the proportional memory of the largest process that draws pages
// for a browser.
func renderer(browser int) (int64, error) {
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	most := int64(0)
	for _, dir := range procs {
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !bytes.Contains(line, []byte("--type=renderer")) || !descends(filepath.Base(dir), browser) {
			continue
		}
		if n, err := field(filepath.Join(dir, "smaps_rollup"), "Pss:"); err == nil {
			most = max(most, n)
		}
	}
	if most == 0 {
		return 0, errors.New("no renderer found")
	}
	return most, nil
}

// descends reports whether a process was started by another, or by one that was.
func descends(pid string, from int) bool {
	for range 10 {
		if pid == strconv.Itoa(from) {
			return true
		}
		text, err := os.ReadFile("/proc/" + pid + "/status")
		if err != nil {
			return false
		}
		_, after, _ := strings.Cut(string(text), "PPid:")
		fields := strings.Fields(after)
		if len(fields) == 0 || fields[0] == "0" {
			return false
		}
		pid = fields[0]
	}
	return false
}

// resident is the memory that a process has now and had at most.
func resident(pid int) (now, most int64, err error) {
	status := fmt.Sprintf("/proc/%d/status", pid)
	if now, err = field(status, "VmRSS:"); err != nil {
		return 0, 0, err
	}
	most, err = field(status, "VmHWM:")
	return now, most, err
}

// field reads a line of /proc that counts kilobytes.
func field(name, key string) (int64, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n * 1024, err
		}
	}
	return 0, fmt.Errorf("%s has no %s", name, key)
}
