//go:build linux

package fleet

import (
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
	"github.com/ashlar-mem/ashlar/internal/hub/hubtest"
)

// long is what make fleet-faults sets.
var long = flag.Bool("long", false, "more files, more faults")

// skipShort leaves a test out where TestFaults has the same code under the race
// detector.
func skipShort(t *testing.T) {
	if testing.Short() {
		t.Skip("the processes do nothing that they do not do in TestFaults")
	}
}

// Processes of a fleet are killed: workers, the server, and the adder; one freezes
// for longer than its job may take, and commits late; the clock of another is
// wrong, and jumps.
func TestFaults(t *testing.T) {
	for _, where := range []struct {
		name  string
		place func(t *testing.T) *servers
	}{{"folder", startFolder}, {"three servers", startThree}, {"nats-server", startProgram}} {
		t.Run(where.name, func(t *testing.T) {
			t.Parallel()
			if where.name != "folder" {
				skipShort(t)
			}
			testFaults(t, where.place(t))
		})
	}
}

func testFaults(t *testing.T, on *servers) {
	files, serverKills, workerKills := 24, 2, 2
	if *long {
		files, serverKills, workerKills = 1000, 5, 60
	}
	random := rand.New(rand.NewPCG(1, 2))
	pattern := makeFiles(t, t.TempDir(), files)
	adder := start(t, at(on.options, "add", "-files", pattern, "-jump", "-48h")...)
	workers := []*process{start(t, at(on.options, "work")...), start(t, at(on.options, "work")...)}
	time.Sleep(300 * time.Millisecond)
	adder.restart()
	for i := range workerKills {
		time.Sleep(time.Duration(random.IntN(800)) * time.Millisecond)
		workers[random.IntN(len(workers))].restart()
		if i*serverKills/workerKills != (i+1)*serverKills/workerKills {
			on.restart()
		}
	}
	workers[0].signal(syscall.SIGSTOP)
	time.Sleep(3 * time.Second) // the job goes to another one after 1 s
	workers[0].signal(syscall.SIGCONT)
	if err := adder.cmd.Wait(); err != nil {
		t.Error(err)
	}
	st := openStore(t, on.options)
	await(t, st, files)
	verify(t, st, pattern)
}

// A worker and an adder lose their connection to an unmodified server elsewhere.
func TestNetwork(t *testing.T) {
	skipShort(t)
	files, cut := 12, 2*time.Second
	if *long {
		files, cut = 100, 30*time.Second
	}
	url := startProgram(t).options.URL
	p := hubtest.NewProxy(t, url)
	pattern := makeFiles(t, t.TempDir(), files)
	st := openStore(t, hub.Options{URL: url})
	adder := start(t, "add", "-hub", p.URL(), "-files", pattern)
	start(t, "work", "-hub", p.URL())
	await(t, st, 2)
	p.Cut(cut)
	p.Hold(cut)
	if err := adder.cmd.Wait(); err != nil {
		t.Error(err)
	}
	await(t, st, files)
	verify(t, st, pattern)
}

// Three servers hold three copies; the one that leads is killed and comes back
// empty.
func TestCluster(t *testing.T) {
	if !*long {
		t.Skip("three servers take a while to agree")
	}
	const files = 60
	nodes, url := startCluster(t)
	pattern := makeFiles(t, t.TempDir(), files)
	start(t, "work", "-hub", url)
	adder := start(t, "add", "-hub", url, "-files", pattern)
	st := openStore(t, hub.Options{URL: url})
	await(t, st, 5)
	state, err := st.results.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lost := nodes[state.Leader]
	if lost == nil {
		t.Fatalf("no server is called %q", state.Leader)
	}
	lost.kill()
	if err := os.RemoveAll(lost.dir); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	lost.start()
	if err := adder.cmd.Wait(); err != nil {
		t.Error(err)
	}
	await(t, st, files)
	verify(t, st, pattern)
	for {
		state, err := st.results.State(t.Context())
		if err == nil && state.Behind == 0 {
			break
		}
		time.Sleep(time.Second)
	}
}

// Nothing is half done when the disk is full, and work goes on when it is not.
func TestFull(t *testing.T) {
	skipShort(t)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=160m"); err != nil {
		t.Skipf("a small disk cannot be made: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, 0) })
	pattern := makeFiles(t, t.TempDir(), 8)
	served := start(t, "hub", "-dir", filepath.Join(dir, "store"))
	st := openStore(t, hub.Options{Dir: filepath.Join(dir, "store")})
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 120<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := st.Add(t.Context(), paths(files...), AddOptions{}, func(int) {}); !errors.Is(err, hub.ErrFull) || a.Added != 0 {
		t.Errorf("added to a full disk: %+v, %v", a, err)
	}
	adder := start(t, "add", "-dir", filepath.Join(dir, "store"), "-files", pattern)
	start(t, "work", "-dir", filepath.Join(dir, "store"))
	time.Sleep(time.Second)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := adder.cmd.Wait(); err != nil {
		t.Error(err)
	}
	await(t, st, len(files))
	verify(t, st, pattern)
	served.kill()
}

// A fleet that cannot be made for want of room says so.
func TestFullAtFirst(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a small disk cannot be made: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := hub.Open(t.Context(), hub.Options{Dir: filepath.Join(dir, "store")})
	if err == nil {
		_, err = Open(t.Context(), h)
		h.Close()
	}
	if !errors.Is(err, hub.ErrFull) {
		t.Errorf("%v", err)
	}
}

// A file that kills its worker, and one that outlives it, are set aside after
// three tries; the others are not kept waiting.
func TestAside(t *testing.T) { eachPlace(t, testAside) }

func testAside(t *testing.T, o hub.Options) {
	from := t.TempDir()
	pattern := makeFiles(t, from, 0)
	st := openStore(t, o)
	for _, what := range []string{"kill", "sleep", "no", "none"} {
		text := "poison: " + what + "\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 10.00 MiB is free.\n"
		if err := os.WriteFile(from+"/0000-"+what+".log", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := roleFlags{files: pattern}
	if err := f.addFiles(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	start(t, at(o, "work", "-max-time", "2s")...)
	await(t, st, 4)
	x, err := NewIndex(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	s, err := x.status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Problems) != 2 || !s.Problems[0].Aside || !s.Problems[1].Aside || s.Analysed != 2 || s.Failed != 2 {
		t.Errorf("%+v", s)
	}
	for i, want := range []string{
		"set aside after 3 tries: its worker died: signal: killed",
		"set aside after 3 tries: it took longer than 2s",
	} {
		if s.Problems[i].Error != want {
			t.Errorf("%q, want %q", s.Problems[i].Error, want)
		}
	}
}
