package tier

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// HostRoom returns how much host memory can be had: the least of what the system
// reports as available and of what the control groups of this process allow.
// Memory that a device reads is never swapped, so not all of it should be taken.
func HostRoom() (uint64, error) { return hostRoom(os.DirFS("/")) }

func hostRoom(root fs.FS) (uint64, error) {
	info, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0, err
	}
	kib, ok := field(string(info), "MemAvailable:")
	if !ok {
		return 0, errors.New("tier: /proc/meminfo does not tell how much memory is available")
	}
	room := kib << 10
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return room, nil // a system without control groups
	}
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[1] == "":
			for _, most := range []string{"memory.max", "memory.high"} { // above the latter a process is slowed down to a stop
				room = min(room, headroom(root, "sys/fs/cgroup", parts[2], most, "memory.current", "inactive_file"))
			}
		case strings.Contains(parts[1], "memory"):
			room = min(room, headroom(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"))
		}
	}
	return room, nil
}

// headroom returns what a control group and those above it leave. Pages of files that
// nobody uses are given up before anybody is refused memory. A container sees its own
// group at the top.
func headroom(root fs.FS, mount, group, most, used, unused string) uint64 {
	room := uint64(math.MaxUint64)
	for dir := path.Join(mount, group); ; dir = path.Dir(dir) {
		limit, ok := number(root, path.Join(dir, most))
		if usage, known := number(root, path.Join(dir, used)); ok && known {
			stat, _ := fs.ReadFile(root, path.Join(dir, "memory.stat"))
			files, _ := field(string(stat), unused)
			usage -= min(usage, files)
			room = min(room, limit-min(limit, usage))
		}
		if len(dir) <= len(mount) {
			return room
		}
	}
}

// number reads a file with one number; "max" is none.
func number(root fs.FS, name string) (uint64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// field finds the number behind a name at the beginning of a line.
func field(text, name string) (uint64, bool) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == name {
			n, err := strconv.ParseUint(f[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
