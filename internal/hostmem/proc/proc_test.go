//go:build linux

package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

// shell starts a script that says "up" when it is.
func shell(t testing.TB, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
	})
	up := make([]byte, 3)
	if n, err := out.Read(up); err != nil || string(up[:n]) != "up\n" {
		t.Fatalf("%q, %v", up[:n], err)
	}
	return cmd
}

// eight is a shell with six children and a grandchild.
const eight = "for i in 1 2 3 4 5 6; do sleep 1000 & done; sh -c 'sleep 1000; :' & sleep 0.2; echo up; wait"

func TestTree(t *testing.T) {
	pid := shell(t, "sh -c 'sleep 1000 & echo up; wait' & wait").Process.Pid
	tree, err := Tree(pid)
	if err != nil || len(tree) != 3 || tree[0] != pid {
		t.Fatalf("%v, %v", tree, err)
	}
	if scanned := scanTree(nil, pid); !slices.Equal(scanned, tree) {
		t.Errorf("%v by children, %v by parents", tree, scanned)
	}
	group := Group(pid)
	slices.Sort(tree)
	slices.Sort(group)
	if !slices.Equal(tree, group) {
		t.Errorf("tree %v, group %v", tree, group)
	}
	for _, kid := range tree {
		if s, err := ReadStat(kid); err != nil || s.Group != pid {
			t.Errorf("%+v, %v", s, err)
		}
	}
	if _, err := Tree(1 << 30); !errors.Is(err, ErrNoProcess) {
		t.Error(err)
	}
}

func TestSampler(t *testing.T) {
	cmd := shell(t, "(sleep 1000; :) & sleep 0.1; echo up; wait")
	s, err := NewSampler(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first, err := s.Sample()
	if err != nil {
		t.Fatal(err)
	}
	if first.Processes != 3 || first.Threads != 3 || first.MinorFaults == 0 || first.Detail == nil {
		t.Errorf("%+v", first)
	}
	d := first.Detail
	if d.RSSBytes == 0 || d.PSSBytes == 0 || d.PSSBytes > d.RSSBytes || d.AnonymousBytes == 0 || d.VoluntarySwitches == 0 || d.Unreadable != 0 {
		t.Errorf("%+v", d)
	}
	// What the kernel counts as it goes may lag a little behind.
	if diff := int64(first.RSSBytes) - int64(d.RSSBytes); diff < -1<<21 || diff > 1<<21 {
		t.Errorf("stat says %d, smaps %d", first.RSSBytes, d.RSSBytes)
	}
	second, err := s.Sample()
	if err != nil || second.Detail != nil || second.Processes != 3 {
		t.Errorf("%+v, %v", second, err)
	}
	if all, err := Measure(s.PIDs()); err != nil || all.Processes != 3 || all.Detail == nil {
		t.Errorf("%+v, %v", all, err)
	}

	// A child whose parent is gone stays in the tree.
	pids := s.PIDs()
	syscall.Kill(pids[0], syscall.SIGKILL)
	cmd.Wait()
	third, err := s.Sample()
	if err != nil || third.Processes != 2 || third.Left != 1 || !slices.Equal(s.PIDs(), pids[1:]) {
		t.Errorf("%+v, %v", third, err)
	}
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, err = s.Sample(); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrNoProcess) {
		t.Errorf("when all are gone: %v", err)
	}
	if _, err := NewSampler(cmd.Process.Pid); !errors.Is(err, ErrNoProcess) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := NewSamplerOf(); !errors.Is(err, ErrNoProcess) {
		t.Errorf("of nothing: %v", err)
	}
}

// Who has left is counted, and who came instead is seen at once.
func TestSampleSeesSuccessor(t *testing.T) {
	pid := shell(t, "sleep 1000 & echo up; wait; sleep 1001; :").Process.Pid
	s, err := NewSampler(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first, err := s.Sample()
	if err != nil || first.Processes != 2 || first.Left != 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	// The tree is old: it would not be looked through for a second.
	s.bornAt, s.tree = time.Now().Add(-time.Hour), pace{at: time.Now().Add(time.Minute), cost: -time.Hour}
	child := s.PIDs()[1]
	syscall.Kill(child, syscall.SIGKILL)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if tree, err := Tree(pid); err == nil && len(tree) == 2 && tree[1] != child {
			break
		}
	}
	second, err := s.Sample()
	if err != nil || second.Processes != 2 || second.Left != 1 || s.PIDs()[1] == child {
		t.Errorf("%+v of %v, %v", second, s.PIDs(), err)
	}
	if third, err := s.Sample(); err != nil || third.Left != 0 {
		t.Errorf("%+v, %v", third, err)
	}
}

// CPU time of a child that has ended is with its parent.
func TestSampleKeepsCPU(t *testing.T) {
	cmd := shell(t, "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; echo up; sleep 1000; :")
	s, err := Measure([]int{cmd.Process.Pid})
	if err != nil || s.CPU < 2*tick {
		t.Errorf("%v, %v", s.CPU, err)
	}
}

// LazyFree is what was given back but not taken yet.
func TestLazyFree(t *testing.T) {
	const size = 8 << 20
	mem, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(mem)
	for i := 0; i < size; i += 4096 {
		mem[i] = 1
	}
	const madvFree = 8
	if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, uintptr(unsafe.Pointer(&mem[0])), size, madvFree); errno != 0 {
		t.Skip(errno)
	}
	r, err := ReadRollup(os.Getpid())
	if err != nil || r.LazyFreeBytes < size/2 || r.RSSBytes < size {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestSelf(t *testing.T) {
	pid := os.Getpid()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if name, deleted, err := Executable(pid); err != nil || name != self || deleted {
		t.Errorf("%s, %v, %v", name, deleted, err)
	}
	if args, err := Arguments(pid); err != nil || !slices.Equal(args, os.Args) {
		t.Errorf("%q, %v", args, err)
	}
	env, err := Environ(pid)
	if err != nil || !slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, "PATH=") }) {
		t.Errorf("%q, %v", env, err)
	}
	maps, err := ReadMaps(pid)
	if err != nil {
		t.Fatal(err)
	}
	mem, err := OpenMemory(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	i := slices.IndexFunc(maps, func(m Mapping) bool { return m.Path == self && m.Offset == 0 })
	if i < 0 {
		t.Fatal("the program is not in its maps")
	}
	var magic [4]byte
	if _, err := mem.ReadAt(magic[:], int64(maps[i].Start)); err != nil || string(magic[:]) != "\x7fELF" {
		t.Errorf("%q, %v", magic, err)
	}
	if _, err := mem.Word(8); err == nil {
		t.Error("the first page is mapped")
	}
	f, err := OpenMapped(pid, &maps[i])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.ReadAt(magic[:], 0); err != nil || string(magic[:]) != "\x7fELF" {
		t.Errorf("%q, %v", magic, err)
	}
	if ThreadName(pid, pid) == "" {
		t.Error("the first thread has no name")
	}
}

// Links are followed as the process would, also upwards.
func TestOpenFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a", "text"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"absolute": filepath.Join(dir, "a"), "relative": "a/b/../text", "loop": "loop", "a/b/up": "../text",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for name, ok := range map[string]bool{
		dir + "/absolute/text": true, dir + "/relative": true, dir + "/a/b/up": true, "a/./text": true, "/../../" + dir + "/a/text": true,
		dir + "/loop": false, dir + "/none": false,
	} {
		f, err := OpenFile(os.Getpid(), name)
		if (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			f.Close()
		}
	}
	if to, err := ReadLink(os.Getpid(), dir+"/loop"); err != nil || to != "loop" {
		t.Errorf("%q, %v", to, err)
	}
}

func TestStatusField(t *testing.T) {
	text := []byte("Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n")
	if v, i := statusField(text, "voluntary_ctxt_switches"), statusField(text, "nonvoluntary_ctxt_switches"); v != 12 || i != 3 {
		t.Errorf("%d, %d", v, i)
	}
	if statusField(bytes.TrimSpace(text), "absent") != 0 {
		t.Error("absent")
	}
}

// reads is how many times this program has read from files.
func reads(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skip(err)
	}
	var n int
	if _, err := fmt.Sscanf(string(text[bytes.Index(text, []byte("syscr")):]), "syscr: %d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A plain sample reads two small files of each process and allocates nothing. What
// that costs, make bench-host measures.
func TestSampleIsCheap(t *testing.T) {
	s, err := NewSampler(shell(t, eight).Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if first, err := s.Sample(); err != nil || first.Processes < 8 {
		t.Fatalf("%+v, %v", first, err)
	}
	s.fixed = true
	const n = 200
	before := reads(t)
	for range n {
		if _, err := s.sample(false); err != nil {
			t.Fatal(err)
		}
	}
	if each := float64(reads(t)-before) / (n * float64(len(s.PIDs()))); each > 2.1 {
		t.Errorf("%.2f reads of a process for a sample", each)
	}
	if allocs := testing.AllocsPerRun(20, func() { s.sample(false) }); allocs > 0 {
		t.Errorf("%.0f allocations a sample", allocs)
	}
}

// What is dear is done less often.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pace
		count := func(cost time.Duration) (n int) {
			p = pace{}
			for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(100 * time.Millisecond) {
				if p.due() {
					p.do(func() { time.Sleep(cost) })
					n++
				}
			}
			return n
		}
		if n := count(time.Millisecond); n != 60 {
			t.Errorf("what is cheap is done %d times a minute", n)
		}
		if n := count(20 * time.Millisecond); n != 4 {
			t.Errorf("what takes 20 ms is done %d times a minute", n)
		}
	})
}

// A sample of eight processes, ten of which are taken a second. BenchmarkDetail
// is what [Sampler] does at most once a second.
func BenchmarkSample(b *testing.B) {
	s, err := NewSampler(shell(b, eight).Process.Pid)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if first, err := s.Sample(); err != nil || first.Processes < 8 {
		b.Fatalf("%+v, %v", first, err)
	}
	s.fixed = true
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.sample(false); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDetail(b *testing.B) {
	s, err := NewSampler(shell(b, eight).Process.Pid)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.ReportAllocs()
	for b.Loop() {
		s.tree = pace{}
		if _, err := s.SampleDetailed(); err != nil {
			b.Fatal(err)
		}
	}
}
