//go:build linux

package fleet

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/answer/tune"
	"github.com/ashlar-mem/ashlar/internal/hub"
	"github.com/ashlar-mem/ashlar/internal/test/planted"
)

// These measure, and assert only what does not depend on the machine: make
// fleet-bars prints the figures of docs/fleet.md.
var (
	bars      = flag.Bool("bars", false, "measure how fast the fleet is, and how much memory it takes")
	barsFiles = flag.Int("bars-files", 1000, "files to analyse")
	barsStore = flag.String("bars-store", "", "an empty folder for the 100,000 results, which stay there: the page is measured with them")
)

// program builds the command, unless $ASHLAR names it.
func program(t *testing.T) string {
	t.Helper()
	if !*bars {
		t.Skip("only with -bars")
	}
	if path := os.Getenv("ASHLAR"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "ashlar")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", path, "../../cmd/ashlar").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// cost is what a command took.
type cost struct {
	wall, cpu time.Duration
	peak      int64 // bytes of the largest process
}

func (c cost) String() string {
	return fmt.Sprintf("%.1f s, %.1f s of CPU, %d MiB", c.wall.Seconds(), c.cpu.Seconds(), c.peak>>20)
}

func costOf(cmd *exec.Cmd, begin time.Time) cost {
	use := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return cost{time.Since(begin), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), use.Maxrss << 10}
}

// measure runs a command with all its children.
func measure(t *testing.T, name string, args ...string) cost {
	t.Helper()
	cmd, begin := exec.Command(name, args...), time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out[:min(len(out), 500)])
	}
	return costOf(cmd, begin)
}

// The whole way of a planted fleet, beside the same commands without a fleet.
func TestBarAnalyse(t *testing.T) {
	ashlar, from, dir := program(t), t.TempDir(), t.TempDir()
	p := planted.Usual()
	p.Files = *barsFiles
	if _, err := planted.Write(t.Context(), "../../testdata", from, p); err != nil {
		t.Fatal(err)
	}
	script := `find "$1" -type f -name '*.pickle*' -print0 | xargs -0 -P2 -I{} sh -c '"$0" explain --json "$1" >/dev/null && "$0" stats --json "$1" >/dev/null' "$2" {}`
	alone := measure(t, "sh", "-c", script, "sh", from, ashlar)
	var files []string
	filepath.WalkDir(from, func(path string, d os.DirEntry, _ error) error {
		if strings.Contains(path, ".pickle") {
			files = append(files, path)
		}
		return nil
	})
	begin := time.Now()
	added := measure(t, ashlar, append([]string{"fleet", "add", "--dir", dir}, files...)...)
	cmd := exec.Command(ashlar, "fleet", "serve", "--dir", dir, "-j", "2")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	st := openStore(t, hub.Options{Dir: dir, Follow: true})
	await(t, st, len(files))
	whole := time.Since(begin)
	cmd.Process.Signal(os.Interrupt)
	cmd.Wait()
	served := costOf(cmd, begin)
	t.Logf("%d files: xargs -P2 %v; fleet %.1f s, %.1f s of CPU (add %v)", len(files), alone, whole.Seconds(), (added.cpu + served.cpu).Seconds(), added)
	t.Logf("ratio: %.2f of the wall time, %.2f of the CPU time", whole.Seconds()/alone.wall.Seconds(), (added.cpu+served.cpu).Seconds()/alone.cpu.Seconds())
}

// bulk writes files that look like pickles at their beginning.
func bulk(t *testing.T, n int, size int64) []string {
	t.Helper()
	random, dir := rand.NewChaCha8([32]byte{}), t.TempDir()
	var files []string
	for i := range n {
		data := make([]byte, size)
		random.Read(data)
		data[0] = 0x80
		files = append(files, filepath.Join(dir, strconv.Itoa(i)))
		if err := os.WriteFile(files[i], data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestBarAdd(t *testing.T) {
	ashlar := program(t)
	const n, size = 8, 64 << 20
	files := bulk(t, n, size)
	_, url := startCluster(t)
	for _, where := range []struct {
		name  string
		flags []string
	}{{"embedded", []string{"--dir", t.TempDir()}}, {"three nodes", []string{"--hub", url}}} {
		if where.name == "three nodes" {
			start(t, "add", "-hub", url, "-files", "none").cmd.Wait() // until there is a leader
		}
		c := measure(t, ashlar, append(append([]string{"fleet", "add"}, where.flags...), files...)...)
		t.Logf("%s: %.0f MB/s; %v", where.name, n*size/1e6/c.wall.Seconds(), c)
	}
}

// A file of 1 GB: what the hub and the worker take beside what explain takes.
func TestBarLarge(t *testing.T) {
	ashlar, dir := program(t), t.TempDir()
	file := filepath.Join(t.TempDir(), "large.pickle")
	measure(t, ashlar, "gen", "../../testdata/snapshots/gpt2_fixed-default.pickle.gz", file, "--bytes", "1GB", "--stack-depth", "40", "--distinct-stacks", "20000")
	alone := measure(t, ashlar, "explain", "--json", file)
	both := measure(t, ashlar, "stats", "--json", file)
	hubProcess, worker := exec.Command(ashlar, "fleet", "serve", "--dir", dir, "-j", "0"), exec.Command(ashlar, "fleet", "work", "--dir", dir, "-j", "1")
	if err := hubProcess.Start(); err != nil {
		t.Fatal(err)
	}
	st := openStore(t, hub.Options{Dir: dir, Follow: true})
	added := measure(t, ashlar, "fleet", "add", "--dir", dir, file)
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	child := int64(0)
	for {
		if s, err := st.rows.State(t.Context()); err == nil && s.Messages > 0 {
			break
		}
		child = max(child, childPeak(worker.Process.Pid))
		time.Sleep(20 * time.Millisecond)
	}
	peaks := []int64{highWater(hubProcess.Process.Pid), highWater(worker.Process.Pid)}
	for _, cmd := range []*exec.Cmd{worker, hubProcess} {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	}
	t.Logf("explain %v; stats %v; add %v; hub %d MiB, worker %d MiB and its process %d MiB", alone, both, added, peaks[0]>>20, peaks[1]>>20, child>>20)
}

// The search of tune on one worker with the cores of this machine, beside the
// command.
func TestBarTune(t *testing.T) {
	ashlar, dir := program(t), t.TempDir()
	const file = "../../testdata/snapshots/gpt2_varlen-default.pickle.gz"
	rate := func(args ...string) float64 {
		t.Helper()
		out, err := exec.Command(ashlar, append(args, "--json", "--budget", "30s")...).Output()
		var d tune.Document
		if err == nil {
			err = json.Unmarshal(out, &d)
		}
		if err != nil {
			t.Fatal(err)
		}
		return float64(d.Evaluated) / d.Seconds
	}
	cmd := exec.Command(ashlar, "fleet", "serve", "--dir", dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	st := openStore(t, hub.Options{Dir: dir, Follow: true})
	if _, err := st.AddOne(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	await(t, st, 1)
	alone, together := rate("tune", file), rate("fleet", "tune", "--dir", dir, file)
	t.Logf("tune %.0f settings/s, fleet tune %.0f: %.2f", alone, together, together/alone)
}

// highWater is the most memory that a process had.
func highWater(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	var kib int64
	fmt.Sscan(after, &kib)
	return kib << 10
}

// childPeak is that of the largest child of a process.
func childPeak(pid int) (most int64) {
	out, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0
	}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		more, _ := os.ReadFile(task)
		out = append(append(out, ' '), more...)
	}
	for _, child := range strings.Fields(string(out)) {
		if n, err := strconv.Atoi(child); err == nil {
			most = max(most, highWater(n))
		}
	}
	return most
}

// A fleet with 100,000 results: two of each of 50,000 files.
func TestBarResults(t *testing.T) {
	ashlar, dir := program(t), *barsStore
	if dir == "" {
		dir = t.TempDir()
	}
	const n = 50_000
	begin := time.Now()
	fill(t, dir, n)
	t.Logf("filled: %.0f messages/s", n*float64(2+len(questions))/time.Since(begin).Seconds())
	cmd := exec.Command(ashlar, "fleet", "serve", "--dir", dir, "-j", "0")
	for i := range 2 {
		begin := time.Now()
		cmd = exec.Command(ashlar, "fleet", "serve", "--dir", dir, "-j", "0")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for !listens(filepath.Join(dir, "hub.sock")) {
			time.Sleep(20 * time.Millisecond)
		}
		h, err := hub.Open(t.Context(), hub.Options{Dir: dir, Follow: true})
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := h.Ask(t.Context(), askSubject, []byte(`{"query":{"limit":1}}`), time.Minute); err == nil {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		h.Close()
		t.Logf("start %d: %.1f s until the first answer", i+1, time.Since(begin).Seconds())
		if i == 0 {
			cmd.Process.Kill()
			cmd.Wait()
		}
	}
	for _, args := range [][]string{
		{"query", "--where", `run =~ "run1.*" and peak_reserved_bytes > 60MiB`, "--limit", "50"},
		{"query", "--group-by", "run,commit"},
		{"query", "--sort", "-peak_reserved_bytes", "--limit", "100"},
		{"ranks", "run3"},
		{"status"},
		{"query", "-o", filepath.Join(t.TempDir(), "all.parquet")},
	} {
		c := measure(t, ashlar, append([]string{"fleet"}, append(args, "--dir", dir)...)...)
		t.Logf("%s: %.2f s", strings.Join(args[:min(3, len(args))], " "), c.wall.Seconds())
	}
	t.Logf("server: %d MiB", highWater(cmd.Process.Pid)>>20)
	cmd.Process.Kill()
	cmd.Wait()
}

// listens reports whether a process listens at a socket.
func listens(path string) bool {
	sockets, err := os.ReadFile("/proc/net/unix")
	return err == nil && strings.Contains(string(sockets), " "+path+"\n")
}

// fill makes a fleet whose results are copies of one, with other numbers.
func fill(t *testing.T, dir string, n int) {
	t.Helper()
	ctx := t.Context()
	h, err := hub.Open(ctx, hub.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	st, err := Open(ctx, h)
	if err != nil {
		t.Fatal(err)
	}
	const file = "../../testdata/snapshots/gpt2_fixed-tight-default.pickle.gz"
	a, err := Analyse(ctx, file, file)
	if err != nil {
		t.Fatal(err)
	}
	packed := map[string][]byte{}
	for name, d := range a.Documents {
		packed[name] = encoder().EncodeAll(d.JSON, []byte{storedJSON})
	}
	row, err := json.Marshal(a.Row)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		hash := fmt.Sprintf("%064x", i)
		rank := int64(i % 64)
		f := File{Hash: hash, Name: fmt.Sprintf("run%d/%d.pickle", i%100, i), Run: fmt.Sprintf("run%d", i%100), Rank: &rank, Commit: fmt.Sprintf("%x", i/6400), AddedUS: int64(i)}
		if err := create(ctx, st.files, hash, f); err != nil {
			t.Fatal(err)
		}
		for _, q := range questions {
			if _, err := st.results.Append(ctx, q.subject(hash), packed[q.name], 0); err != nil {
				t.Fatal(err)
			}
		}
		peak := fmt.Appendf(nil, `"peak_reserved_bytes":%d,`, 1<<26+i)
		at := bytes.Index(row, []byte(`"peak_reserved_bytes"`))
		end := at + bytes.IndexByte(row[at:], ',') + 1
		if _, err := st.rows.Append(ctx, rowSubject(hash), bytes.Join([][]byte{row[:at], peak, row[end:]}, nil), 0); err != nil {
			t.Fatal(err)
		}
	}
}
