package proc

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseStat(t *testing.T) {
	page := uint64(os.Getpagesize())
	line := "123 (a ) (b) S 7 8 9 0 -1 4194560 100 200 3 4 150 50 30 20 20 0 5 0 987654 1000000 77 18446744073709551615 1 1 0\n"
	var s Stat
	if err := s.parse([]byte(line)); err != nil {
		t.Fatal(err)
	}
	want := Stat{
		PID: 123, Name: "a ) (b", State: 'S', Parent: 7, Group: 8, Session: 9, Threads: 5, Start: 987654,
		MinorFaults: 100, ChildrenMinorFaults: 200, MajorFaults: 3, ChildrenMajorFaults: 4,
		CPU: 2 * time.Second, ChildrenCPU: 500 * time.Millisecond, VirtualBytes: 1000000, RSSBytes: 77 * page,
	}
	if d := cmp.Diff(want, s); d != "" {
		t.Error(d)
	}
	if err := s.parse([]byte(strings.Replace(line, "4194560", "69238848", 1))); err != nil || !s.Kernel {
		t.Errorf("no kernel thread: %+v, %v", s, err)
	}
	for _, bad := range []string{"", "1", "1 (x", "x (y) S 1", "1 (x) S 1 2 3"} {
		if err := s.parse([]byte(bad)); err == nil {
			t.Errorf("%q is no stat", bad)
		}
	}
}

func TestParseStatAllocatesNothing(t *testing.T) {
	line := []byte("123 (python3) S 7 8 9 0 -1 4194560 100 200 3 4 150 50 30 20 20 0 5 0 987654 1000000 77 0\n")
	var s Stat
	if n := testing.AllocsPerRun(100, func() { s.parse(line) }); n > 0 {
		t.Errorf("%.0f allocations", n)
	}
}

const smapsText = `00400000-00401000 r-xp 00000000 08:01 42                                 /opt/my app/libx.so (deleted)
Size:                  4 kB
Rss:                   4 kB
Pss:                   2 kB
Pss_Dirty:             1 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
55d0c8a00000-55d0c8b00000 rw-p 00000000 00:00 0                          [heap]
Rss:                1024 kB
Pss:                1024 kB
Anonymous:          1024 kB
LazyFree:             12 kB
AnonHugePages:         0 kB
Swap:                  8 kB
7f0000000000-7f0000021000 rw-p 00000000 00:00 0 
Rss:                 132 kB
Pss:                 132 kB
Anonymous:           132 kB
AnonHugePages:      2048 kB
7f1000000000-7f1000001000 rw-s 00000000 00:01 99                         /dev/shm/x\012y
Rss:                   4 kB
Pss:                   4 kB
7f2000000000-7f2000001000 rw-p 00000000 00:00 0                          [anon:jemalloc]
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
`

func TestParseSmaps(t *testing.T) {
	all, err := parseSmaps(strings.NewReader(smapsText))
	if err != nil {
		t.Fatal(err)
	}
	want := []Mapping{
		{Start: 0x400000, End: 0x401000, Perms: "r-xp", Device: "08:01", Inode: 42, Path: "/opt/my app/libx.so", Deleted: true},
		{Start: 0x55d0c8a00000, End: 0x55d0c8b00000, Perms: "rw-p", Device: "00:00", Path: Heap},
		{Start: 0x7f0000000000, End: 0x7f0000021000, Perms: "rw-p", Device: "00:00"},
		{Start: 0x7f1000000000, End: 0x7f1000001000, Perms: "rw-s", Device: "00:01", Inode: 99, Path: "/dev/shm/x\ny"},
		{Start: 0x7f2000000000, End: 0x7f2000001000, Perms: "rw-p", Device: "00:00", Path: "[anon:jemalloc]"},
		{Start: 0x7ffc00000000, End: 0x7ffc00021000, Perms: "rw-p", Device: "00:00", Path: Stack},
		{Start: 0xffffffffff600000, End: 0xffffffffff601000, Perms: "--xp", Device: "00:00", Path: "[vsyscall]"},
	}
	var got []Mapping
	var anonymous []bool
	for _, u := range all {
		got = append(got, u.Mapping)
		anonymous = append(anonymous, u.Anonymous())
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]bool{false, true, true, false, true, false, false}, anonymous); d != "" {
		t.Error(d)
	}
	sum := Rollup{
		RSSBytes: (4 + 1024 + 132 + 4) << 10, PSSBytes: (2 + 1024 + 132 + 4) << 10, AnonymousBytes: (1024 + 132) << 10,
		LazyFreeBytes: 12 << 10, HugePageBytes: 2048 << 10, SwapBytes: 8 << 10,
	}
	if d := cmp.Diff(sum, Sum(all)); d != "" {
		t.Error(d)
	}
	if !all[0].Executable() || all[0].Writable() || !all[3].Shared() || all[3].OfDisk() || !all[0].OfDisk() || all[0].Size() != 4096 {
		t.Errorf("%+v", all)
	}
}

func FuzzSmaps(f *testing.F) {
	f.Add(smapsText)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parseSmaps(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range all {
			if u.End < u.Start || len(u.Perms) != 4 {
				t.Errorf("%+v", u)
			}
		}
	})
}
