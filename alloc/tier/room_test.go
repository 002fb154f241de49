package tier

import (
	"testing"
	"testing/fstest"
)

// TestHostRoom: the least of the system's and of every control group's room counts.
func TestHostRoom(t *testing.T) {
	const meminfo = "MemTotal: 100 kB\nMemAvailable:   4096 kB\n"
	files := func(pairs ...string) fstest.MapFS {
		out := fstest.MapFS{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
		}
		return out
	}
	for _, c := range []struct {
		name string
		root fstest.MapFS
		want uint64
	}{
		{"without groups", files("proc/meminfo", meminfo), 4 << 20},
		{"unlimited", files("proc/meminfo", meminfo, "proc/self/cgroup", "0::/a\n",
			"sys/fs/cgroup/a/memory.max", "max\n", "sys/fs/cgroup/a/memory.current", "1000\n"), 4 << 20},
		{"its own group", files("proc/meminfo", meminfo, "proc/self/cgroup", "0::/a\n",
			"sys/fs/cgroup/a/memory.max", "3000\n", "sys/fs/cgroup/a/memory.current", "1000\n", "sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 200\n"), 2200},
		{"a group above", files("proc/meminfo", meminfo, "proc/self/cgroup", "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max", "3000\n", "sys/fs/cgroup/a/b/memory.current", "1000\n",
			"sys/fs/cgroup/a/memory.max", "2500\n", "sys/fs/cgroup/a/memory.current", "2400\n"), 100},
		{"slowed down before its limit", files("proc/meminfo", meminfo, "proc/self/cgroup", "0::/a\n",
			"sys/fs/cgroup/a/memory.max", "3000\n", "sys/fs/cgroup/a/memory.high", "2000\n", "sys/fs/cgroup/a/memory.current", "1000\n"), 1000},
		{"above its limit", files("proc/meminfo", meminfo, "proc/self/cgroup", "0::/\n",
			"sys/fs/cgroup/memory.max", "3000\n", "sys/fs/cgroup/memory.current", "5000\n"), 0},
		{"version 1", files("proc/meminfo", meminfo, "proc/self/cgroup", "5:cpu:/x\n4:memory:/x\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9000\n", "sys/fs/cgroup/memory/x/memory.usage_in_bytes", "1000\n"), 8000},
	} {
		if got, err := hostRoom(c.root); err != nil || got != c.want {
			t.Errorf("%s: %d, %v, want %d", c.name, got, err, c.want)
		}
	}
	if _, err := hostRoom(files("proc/meminfo", "MemTotal: 100 kB\n")); err == nil {
		t.Error("a system that does not tell what is available has room")
	}
}
