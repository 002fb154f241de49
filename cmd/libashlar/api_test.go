package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/internal/version"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/snapshot/message"
)

func TestPointers(t *testing.T) {
	s := &script{t: t}
	seen := map[uint64]bool{}
	for i := range 200 {
		s.address(func(a uint64) {
			if seen[a] {
				t.Errorf("%#x twice", a)
			}
			seen[a] = true
		}, "malloc %d %d %d %d", i, 1+i*37, i%3, i%2)
	}
	s.expect("0", "malloc 900 0 0 0")
	s.expect(version.Text, "version")
	s.expect("ok", "free 900") // null
	s.expect("ok", "free 0")
	s.address(func(a uint64) { delete(seen, a) }, "malloc 0 1 0 0") // may be the same one
	s.expect("ok", "free 0")
	s.expect("ok", "free 0") // twice
	s.expect("ok", "freeaddr 12345")
	s.expect("ok", "freeaddr 18446744073709551104")
	s.expect("ok", "freeaddr 512")
	s.contains([]string{`"unknown_frees":4`}, "front 0")
	s.expect("failed there is no device -1", "malloc 1 5 0 4294967295")
	s.expect("failed there is no device 64", "malloc 1 5 0 64")
	s.contains([]string{"failed device 9 cannot be used: there is no device 9"}, "malloc 1 5 0 9")
	said := s.run(memoryVariable + "=1GiB")
	if strings.Count(said, "\n") != 1 || !strings.Contains(said, "freed but is not allocated") {
		t.Errorf("standard error: %q", said)
	}
}

// TestOutOfMemory: PyTorch's numbers, which the project's own reader
// understands, and a diagnosis that follows from them.
func TestOutOfMemory(t *testing.T) {
	readable := func(want string) func(string) {
		return func(text string) {
			text, ok := strings.CutPrefix(text, "oom ")
			if !ok {
				t.Errorf("got %s", text)
			}
			m, err := message.Parse(text)
			if err != nil || len(m) != 1 || m[0].Backend != message.Native {
				t.Errorf("%v, %+v in %s", err, m, text)
			}
			if !strings.Contains(text, want) || strings.Contains(text, "PYTORCH_CUDA_ALLOC_CONF") {
				t.Errorf("got  %s\nwant %s", text, want)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "oom-%p-%d.pickle")
	s := &script{t: t}
	s.address(nil, "malloc 0 %d 0 0", 600<<20)
	s.say(readable("Ashlar: what is in use (600.00 MiB) and the request (600.00 MiB) need 176.00 MiB more than the 1.00 GiB"), "malloc 1 %d 0 0", 600<<20)
	s.expect("ok", "configure expandable_segments:False,oom_snapshot:%s", path)
	// Four segments of 100 MiB, every second one in use on another stream.
	for i := range 4 {
		s.address(nil, "malloc %d %d %d 0", 10+i, 100<<20, i%2)
	}
	s.expect("ok", "free 11")
	s.expect("ok", "fraction 990000 0")
	s.expect("ok", "observe")
	s.say(func(text string) {
		observed, text, _ := strings.Cut(text, " oom ")
		readable("A snapshot was written to " + filepath.Dir(path))("oom " + text)
		var device int
		var tried, total, free uint64
		if n, err := fmt.Sscanf(observed, "observed %d %d %d %d", &device, &tried, &total, &free); n != 4 {
			t.Errorf("%v: %s", err, observed)
		}
		if tried != 900<<20 || total != 1063004405 {
			t.Errorf("observed %d of %d", tried, total)
		}
	}, "malloc 20 %d 0 0", 900<<20)
	s.contains([]string{`"num_ooms":2`}, "stats 0")
	s.run(memoryVariable + "=1GiB")
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "oom-*-0.pickle"))
	if err != nil || len(files) != 1 {
		t.Fatalf("snapshots: %v", files)
	}
	if _, err := snapshot.Open(context.Background(), files[0], snapshot.Options{}); err != nil {
		t.Error(err)
	}
}

// TestSnapshotTargets: what is no ordinary file is not replaced by a snapshot,
// and a link is followed.
func TestSnapshotTargets(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	var pipes sync.WaitGroup
	for _, name := range []string{"pipe", "behind"} {
		if err := syscall.Mkfifo(in(name), 0o600); err != nil {
			t.Skip(err)
		}
		pipes.Go(func() {
			if _, err := snapshot.Open(context.Background(), in(name), snapshot.Options{}); err != nil {
				t.Error(err)
			}
		})
	}
	for from, to := range map[string]string{"link": "file", "oom": "behind"} {
		if err := os.Symlink(to, in(from)); err != nil {
			t.Fatal(err)
		}
	}
	s := &script{t: t}
	s.address(nil, "malloc 0 1 0 0")
	s.expect("ok", "write %s", in("link"))
	s.expect("ok", "write %s", in("pipe"))
	s.expect("failed "+dir+" is a directory: name a file in it", "write %s", dir)
	s.expect("failed / is a directory: name a file in it", "write /")
	s.expect("failed the name of the file is empty: name a file to be written", "write")
	s.expect("failed the name of the file is empty: name a file to be written", "writenull")
	s.expect("ok", "configure oom_snapshot:%s", in("oom"))
	s.contains([]string{"oom ", "A snapshot was written to " + in("oom")}, "malloc 1 %d 0 0", 2<<30)
	s.run(memoryVariable + "=1GiB")
	read := make(chan struct{})
	go func() {
		pipes.Wait()
		close(read)
	}()
	select {
	case <-read:
	case <-time.After(time.Minute):
		t.Fatal("a pipe was not written to")
	}
	if _, err := snapshot.Open(context.Background(), in("file"), snapshot.Options{}); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	kinds := ""
	for _, e := range entries {
		kinds += e.Name() + " " + e.Type().String() + "\n"
	}
	if want := "behind p---------\nfile ----------\nlink L---------\noom L---------\npipe p---------\n"; kinds != want {
		t.Errorf("got\n%swant\n%s", kinds, want)
	}
}

// TestPoolIsProtected: what a captured graph used is not handed out again
// before its release, whatever happens around it.
func TestPoolIsProtected(t *testing.T) {
	s := &script{t: t}
	captured := map[uint64]bool{}
	keep := func(a uint64) { captured[a] = true }
	avoid := func(a uint64) {
		if captured[a] {
			t.Errorf("%#x belongs to a graph", a)
		}
	}
	s.address(nil, "malloc 0 4096 1 0")
	s.expect("ok", "free 0") // held by the front
	for round := range 2 {   // two captures share the pool
		s.expect("ok", "begin 0 5 0 1")
		s.expect("failed pool (5,0) already receives allocations", "begin 0 5 0 1")
		for i := range 20 {
			s.address(keep, "malloc %d %d 1 0", 100*(round+1)+i, 4096*(i+1))
			s.address(avoid, "malloc %d %d 2 0", 1000+100*(round+1)+i, 4096*(i+1)) // not captured
		}
		for i := range 20 {
			s.expect("ok", "free %d", 100*(round+1)+i) // temporaries of the graph
		}
		s.expect("ok", "end 0 5 0")
	}
	s.expect("failed pool (5,0) does not receive allocations", "end 0 5 0")
	use := func() {
		s.expect("ok", "empty")
		for i := range 50 {
			s.address(avoid, "malloc %d %d 1 0", 5000+i, 4096*(i%20+1))
		}
		for i := range 50 {
			s.expect("ok", "free %d", 5000+i)
		}
	}
	use()
	s.expect("ok", "release 0 5 0")
	use() // the other graph is still there
	var before, after int64
	reserved := func(to *int64) func(string) {
		return func(text string) {
			*to = flatten("", decode[map[string]any](t, text), map[string]int64{})["reserved_bytes.all.current"]
		}
	}
	s.expect("ok", "empty")
	s.say(reserved(&before), "stats 0")
	s.expect("ok", "release 0 5 0")
	s.expect("ok", "empty")
	s.say(reserved(&after), "stats 0")
	s.contains([]string{"failed pool (5,0)"}, "release 0 5 0")
	s.contains([]string{"failed pool (0,0)"}, "begin 0 0 0 1")
	s.run()
	if len(captured) < 20 || after >= before {
		t.Errorf("%d captured blocks, reserved %d before and %d after the release", len(captured), before, after)
	}
}

// TestHistory: every request and free is recorded, whatever the front held
// before, with the text of the thread.
func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot.pickle")
	s := &script{t: t}
	for i := range 10 {
		s.address(nil, "malloc %d 4096 0 0", i)
	}
	for i := range 8 {
		s.expect("ok", "free %d", i)
	}
	s.expect("ok", "history 1 1000")
	s.expect("ok", "metadata step 7")
	s.expect("step 7", "metadataof")
	for i := range 5 {
		s.address(nil, "malloc %d 4096 0 0", 20+i)
		s.expect("ok", "free %d", 20+i)
	}
	s.expect("ok", "free 8") // handed out before
	s.expect("ok", "write %s", path)
	s.expect("ok", "history 0 0")
	s.say(func(text string) {
		if strings.Contains(text, `"action"`) || !strings.Contains(text, `"max_split_size":-1`) {
			t.Errorf("after the end of the history: %.300s", text)
		}
	}, "snapshot -1")
	s.contains([]string{"failed /nowhere/at/all cannot be written: no such file or directory"}, "write /nowhere/at/all")
	s.run()

	f, err := snapshot.Open(context.Background(), path, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr, _, err := f.Pick(0)
	if err != nil {
		t.Fatal(err)
	}
	var allocs, frees int
	for i := range tr.Events.Len() {
		e := tr.Events.At(i)
		if got := tr.Strings.Text(e.Meta); got != "step 7" {
			t.Errorf("event %d has the text %q", i, got)
		}
		switch e.Action {
		case alloc.ActionAlloc:
			allocs++
		case alloc.ActionFreeCompleted:
			frees++
		}
	}
	if allocs != 5 || frees != 6 || !tr.Settings.Parsed.ExpandableSegments {
		t.Errorf("%d allocs, %d frees, settings %v", allocs, frees, tr.Settings.Parsed)
	}
}

func TestSettingsOfTheLibrary(t *testing.T) {
	s := &script{t: t}
	s.expect("ok", "init 1")
	s.contains([]string{
		`"variable":"PYTORCH_CUDA_ALLOC_CONF"`, `"expandable_segments":true`, `"max_split_size_bytes":67108864`,
		`backend:cudaMallocAsync has no effect`,
	}, "settings")
	s.expect("ok", "configure front_cache:False,history:5")
	s.contains([]string{`"front_cache":false`, `"history":5`, `"max_split_size_bytes":-1`, `"expandable_segments":true`}, "settings")
	s.contains([]string{`failed allocator setting "front_cash"`}, "configure front_cash:True")
	s.run("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64,backend:cudaMallocAsync")

	s = &script{t: t}
	s.contains([]string{`failed ASHLAR_CONF="expandable_segments:Maybe": allocator setting "expandable_segments"`}, "init 1")
	s.contains([]string{`failed ASHLAR_CONF=`}, "malloc 0 5 0 0")
	s.contains([]string{`ASHLAR_CONF=`}, "settings")
	s.contains([]string{`ASHLAR_CONF=`}, "stats 0")
	s.run("ASHLAR_CONF=expandable_segments:Maybe")

	s = &script{t: t}
	s.contains([]string{"no NVIDIA driver"}, "malloc 0 5 0 0")
	s.contains([]string{"no NVIDIA driver"}, "stats 0")
	s.run(driverVariable+"=cuda", "ASHLAR_LIBCUDA=/nowhere/libcuda.so")
}

// TestFrontGivesBack: everything is with the engine before memory grows, is
// trimmed, or anything is told.
func TestFrontGivesBack(t *testing.T) {
	s := &script{t: t}
	held := func(blocks int) {
		s.contains([]string{fmt.Sprintf(`"keep_blocks":%d,`, blocks)}, "front 0")
	}
	fill := func() {
		for i := range 30 {
			s.address(nil, "malloc %d %d 0 0", i, 512*(i+1))
		}
		for i := range 30 {
			s.expect("ok", "free %d", i)
		}
	}
	fill()
	fill()
	held(30)
	s.say(func(string) {}, "stats 0")
	held(0)
	fill()
	s.expect("ok", "empty")
	held(0)
	fill()
	held(30)
	s.address(nil, "malloc 99 %d 0 0", 300<<20) // growth
	held(0)
	fill()
	s.say(func(string) {}, "snapshot 0")
	held(0)
	fill()
	s.expect("ok", "begin 0 1 0 1")
	held(0)
	fill()
	held(0) // off while a pool receives allocations
	s.expect("ok", "end 0 1 0")
	fill()
	held(30)
	s.address(nil, "malloc 200 777 0 0")
	s.expect("ok", "configure garbage_collection_threshold:0.5")
	held(0)
	s.expect("ok", "free 200") // handed out under other settings
	held(0)
	for range 2 { // the first one makes memory grow and cannot be undone
		s.address(nil, "malloc 201 %d 0 0", 5<<20)
		s.expect("ok", "free 201")
	}
	s.contains([]string{`"undone_blocks":1,`}, "front 0")
	s.address(nil, "malloc 202 999 0 0") // a miss takes it along
	s.contains([]string{`"undone_blocks":0,`}, "front 0")
	s.expect("ok", "free 202")
	s.say(func(string) {}, "stats 0")
	fill()
	held(30)
	s.expect("ok", "fraction 900000 0") // now collection counts every request
	fill()
	held(0)
	s.run()
}

func TestThreads(t *testing.T) {
	short.Skip(t)
	for _, conf := range []string{"", "front_cache:False", "expandable_segments:False"} {
		t.Run(conf, func(t *testing.T) {
			t.Parallel()
			out, said := run(t, "threads.cpp", "", confVariable+"="+conf, memoryVariable+"=24GiB",
				"ASHLAR_FRONT_LOCK=engage=2,window=100000,slice=20000,gap=100000,rest=1000") // so that turns are taken
			lines := strings.Split(out, "\n")
			got := flatten("", decode[map[string]any](t, lines[0]), map[string]int64{})
			if got["allocation.all.current"] != 0 || got["allocated_bytes.all.current"] != 0 || got["allocation.all.freed"] < 50_000 {
				t.Errorf("%d of %d blocks are left", got["allocation.all.current"], got["allocation.all.allocated"])
			}
			f := decode[frontState](t, lines[1])
			t.Logf("%d hits, %d misses, %d turns, %d wasted", f.Hits, f.Misses, f.Turns, f.Wasted)
			if f.Unknown != 0 || said != "" {
				t.Errorf("%d unknown frees, standard error: %s", f.Unknown, said)
			}
		})
	}
}

// TestHandover: what was freed can be had by others at once, wherever it is on
// its way back.
func TestHandover(t *testing.T) {
	t.Parallel()
	if out, said := run(t, "handover.cpp", "", memoryVariable+"=100MiB"); out != "0 refused\n" || said != "" {
		t.Errorf("%s%s", out, said)
	}
}

// TestCrowd: a request that has room once all that was freed is back gets it,
// however many threads free and allocate meanwhile, and their churn makes memory
// grow no more than without the front.
func TestCrowd(t *testing.T) {
	t.Parallel()
	peak := map[string]int64{}
	for _, conf := range []string{"front_cache:False", "front_cache:True"} {
		out, said := run(t, "crowd.cpp", "", memoryVariable+"=100MiB", confVariable+"="+conf)
		refused, stats, _ := strings.Cut(out, "\n")
		if refused != "0 refused" || said != "" {
			t.Errorf("%s: %s%s", conf, refused, said)
		}
		peak[conf] = flatten("", decode[map[string]any](t, stats), map[string]int64{})["reserved_bytes.small_pool.peak"]
	}
	t.Logf("small blocks: %v bytes reserved at most", peak)
	if peak["front_cache:True"] > 2*peak["front_cache:False"] {
		t.Errorf("small blocks have %v bytes reserved at most", peak)
	}
}

// TestActive: no reading of the statistics shows more active than reserved.
func TestActive(t *testing.T) {
	t.Parallel()
	for _, conf := range []string{"", "front_cache:False"} {
		if out, said := run(t, "active.cpp", "", memoryVariable+"=1GiB", confVariable+"="+conf); out != "0 and 0\n" || said != "" {
			t.Errorf("%q: %s%s", conf, out, said)
		}
	}
}

// TestPoolsComeAndGo: pools are made and deleted while other threads allocate on
// the streams that go to them.
func TestPoolsComeAndGo(t *testing.T) {
	t.Parallel()
	for _, conf := range []string{"", "expandable_segments:False", "expandable_segments:False,release_lock_on_cudamalloc:True"} {
		if out, said := run(t, "pools.cpp", "", memoryVariable+"=1GiB", confVariable+"="+conf); out != "0 failed\n" || said != "" {
			t.Errorf("%s: %s%s", conf, out, said)
		}
	}
}

func TestFork(t *testing.T) {
	t.Parallel()
	if out, said := run(t, "fork.c", ""); out != "ok\n" || said != "" {
		t.Errorf("%s%s", out, said)
	}
}

func TestExit(t *testing.T) {
	t.Parallel()
	for range 30 {
		if out, said := run(t, "exit.cpp", ""); out != "" || said != "" {
			t.Fatalf("%s%s", out, said)
		}
	}
}

// TestBuildsWithoutCgo: C files are left out together with the Go files that need them.
func TestBuildsWithoutCgo(t *testing.T) {
	files, err := filepath.Glob("*.[ch]*")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(f, ".h") && !strings.HasPrefix(string(text), "//go:build cgo\n") {
			t.Errorf("%s would break a build without cgo: it must begin with //go:build cgo", f)
		}
	}
}

// TestSanitizers runs the C side alone under the compiler's sanitizers, with
// threads that share blocks, a lock that hands out turns, and an engine that
// notices a block that comes back twice.
func TestSanitizers(t *testing.T) {
	short.Skip(t)
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no cc: the C side is not tested by itself")
	}
	for _, kind := range []string{"thread", "address,undefined"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "stub")
			args := []string{"-O1", "-g", "-fsanitize=" + kind, "-Wall", "-Wextra", "-Werror", "-I", "testdata/check/stub", "-I", ".", "-o", out, "testdata/check/stub/stub.c"}
			args = append(args, "front.c", "front_bins.c", "front_table.c", "front_lock.c", "bridge.c", "ashlar_gate.c", "ashlar_error.c", "ashlar_tiers.c", "-pthread")
			if text, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
				if strings.Contains(string(text), "cannot find") {
					t.Skipf("the compiler has no -fsanitize=%s", kind)
				}
				t.Fatalf("%v\n%s", err, text)
			}
			cmd := exec.Command(out)
			cmd.Env = append(os.Environ(), "ASHLAR_FRONT_LOCK=engage=2,window=100000,gap=100000,rest=1000")
			text, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%.3000s", err, text)
			}
			t.Logf("%s", text)
		})
	}
}
