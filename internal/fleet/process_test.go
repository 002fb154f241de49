//go:build linux

package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/ashlar-mem/ashlar/internal/hub"
	"github.com/ashlar-mem/ashlar/internal/hub/hubtest"
)

// The test binary plays every process of a fleet: its first argument says which.
var roles = map[string]func(ctx context.Context, f *roleFlags) error{
	"hub":   func(ctx context.Context, f *roleFlags) error { return f.with(ctx, f.serve) },
	"work":  func(ctx context.Context, f *roleFlags) error { return f.with(ctx, f.work) },
	"add":   func(ctx context.Context, f *roleFlags) error { return f.with(ctx, f.addFiles) },
	"child": func(ctx context.Context, _ *roleFlags) error { return runChild(ctx, os.Stdin, os.Stdout, analyseOrDie) },
	"node":  serveNode,
}

type roleFlags struct {
	dir, hub string
	wait     time.Duration
	jobs     int
	maxTime  time.Duration
	jump     time.Duration // of the clock
	files    string
	node     string
	follow   bool
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if role, ok := roles[os.Args[1]]; ok {
			if err := play(role, os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, os.Args[1]+":", err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	code := m.Run()
	hubtest.Stop()
	os.Exit(code)
}

// eachPlace runs a test in a folder, on three servers, and on an unmodified
// nats-server.
func eachPlace(t *testing.T, f func(t *testing.T, o hub.Options)) {
	hubtest.EachPlace(t, func(t *testing.T, p hubtest.Place) { f(t, hub.Options{Dir: p.Dir, URL: p.URL}) })
}

// paths are files that a user named.
func paths(names ...string) (all []Path) {
	for _, name := range names {
		all = append(all, Path{Name: name})
	}
	return all
}

// at is the arguments of a process with a store.
func at(o hub.Options, role string, args ...string) []string {
	return append([]string{role, "-dir", o.Dir, "-hub", o.URL}, args...)
}

func play(role func(context.Context, *roleFlags) error, args []string) error {
	var f roleFlags
	flags := flag.NewFlagSet("role", flag.ContinueOnError)
	flags.StringVar(&f.dir, "dir", "", "")
	flags.StringVar(&f.hub, "hub", "", "")
	flags.DurationVar(&f.wait, "wait", time.Second, "")
	flags.IntVar(&f.jobs, "j", 2, "")
	flags.DurationVar(&f.jump, "jump", 0, "")
	flags.DurationVar(&f.maxTime, "max-time", time.Minute, "")
	flags.StringVar(&f.files, "files", "", "")
	flags.StringVar(&f.node, "node", "", "")
	flags.BoolVar(&f.follow, "follow", true, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return role(ctx, &f)
}

func (f *roleFlags) with(ctx context.Context, do func(context.Context, *Store) error) error {
	var st *Store
	var h *hub.Hub
	err := errors.New("not tried")
	for range 20 { // a cluster may be without a leader
		if h, err = hub.Open(ctx, hub.Options{Dir: f.dir, URL: f.hub, Follow: f.follow}); err != nil {
			sleep(ctx, time.Second)
			continue
		}
		if st, err = open(ctx, h, f.wait); err == nil {
			break
		}
		h.Close()
		sleep(ctx, time.Second)
	}
	if err != nil {
		return err
	}
	defer h.Close()
	calls := time.Duration(0)
	st.now = func() time.Time { // the clock jumps ahead and back
		calls++
		return time.Now().Add(f.jump * (calls % 3))
	}
	return do(ctx, st)
}

func (f *roleFlags) options() WorkOptions {
	return WorkOptions{
		Jobs: f.jobs, MaxTime: f.maxTime, Command: []string{os.Args[0], "child"},
		Log: func(text string) {
			if testing.Testing() && os.Getenv("ASHLAR_FLEET_LOG") != "" {
				fmt.Fprintln(os.Stderr, text)
			}
		},
	}
}

func (f *roleFlags) serve(ctx context.Context, st *Store) error {
	o := f.options()
	o.Jobs = 0
	return st.Serve(ctx, o, Retention{}, nil)
}

func (f *roleFlags) work(ctx context.Context, st *Store) error { return st.Work(ctx, f.options()) }

func (f *roleFlags) addFiles(ctx context.Context, st *Store) error {
	files, err := filepath.Glob(f.files)
	if err != nil {
		return err
	}
	for { // as a user would, until the store is back
		a, err := st.Add(ctx, paths(files...), AddOptions{Run: "faults"}, func(int) {})
		if err == nil {
			return json.NewEncoder(os.Stdout).Encode(a)
		}
		fmt.Fprintln(os.Stderr, "add:", err)
		sleep(ctx, time.Second)
	}
}

func serveNode(ctx context.Context, f *roleFlags) error {
	var n hubtest.Node
	if err := json.Unmarshal([]byte(f.node), &n); err != nil {
		return err
	}
	_, stop, err := hubtest.ServeNode(n)
	if err != nil {
		return err
	}
	<-ctx.Done()
	stop()
	return nil
}

// analyseOrDie is Analyse for files that do harm.
func analyseOrDie(ctx context.Context, path, name string) (*Analysis, error) {
	head := make([]byte, 64)
	if f, err := os.Open(path); err == nil {
		n, _ := f.Read(head)
		head = head[:n]
		f.Close()
	}
	switch {
	case bytes.Contains(head, []byte("poison: kill")):
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case bytes.Contains(head, []byte("poison: sleep")):
		time.Sleep(time.Hour)
	}
	return Analyse(ctx, path, name)
}

// process is a process of the fleet.
type process struct {
	t    *testing.T
	args []string
	cmd  *exec.Cmd
	out  bytes.Buffer
	dir  string // of a server
}

func start(t *testing.T, args ...string) *process {
	p := &process{t: t, args: args}
	p.start()
	t.Cleanup(p.kill)
	return p
}

func (p *process) start() {
	p.cmd = exec.Command(os.Args[0], p.args...)
	p.cmd.Stderr = os.Stderr
	p.cmd.Stdout = &p.out
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
}

// kill is kill -9.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

func (p *process) restart() {
	p.kill()
	p.start()
}

func (p *process) signal(s os.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Error(err)
	}
}

// makeFiles writes n files that are all different: snapshots with another comment
// each, and messages.
func makeFiles(t *testing.T, dir string, n int) (pattern string) {
	t.Helper()
	var plain [][]byte
	for _, name := range []string{"compile", "ring", "graphs", "nocontext", "expand_tight"} {
		f, err := os.Open("../../testdata/variety/" + name + ".pickle.gz")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		plain = append(plain, data)
	}
	for i := range n {
		var buf bytes.Buffer
		name := fmt.Sprintf("%04d.pickle.gz", i)
		if i%4 == 3 {
			name = fmt.Sprintf("%04d.log", i)
			fmt.Fprintf(&buf, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %d.00 MiB. GPU 0 has a total capacity of 79.10 GiB of which 10.00 MiB is free. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.\n", 20+2*i)
		} else {
			z, _ := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
			z.Comment = name
			z.Write(plain[i%len(plain)])
			z.Close()
		}
		if err := os.WriteFile(filepath.Join(dir, name), buf.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "*")
}

// openStore opens the fleet in this process.
func openStore(t *testing.T, o hub.Options) *Store {
	t.Helper()
	h, err := hub.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	st, err := open(t.Context(), h, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// await waits until n files have a row. The whole test has a deadline; nothing
// depends on how fast the machine is.
func await(t *testing.T, st *Store, n int) {
	t.Helper()
	for {
		state, err := st.rows.State(t.Context())
		if err == nil && state.Messages >= uint64(n) {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// verify compares all results with those of a run without faults, and checks that
// none was ever stored twice.
func verify(t *testing.T, st *Store, pattern string) {
	t.Helper()
	ctx := t.Context()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		hash, _, err := hashFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := Analyse(ctx, path, path)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range questions {
			got, err := st.document(ctx, hash, q)
			if err != nil && err.Error() == want.Documents[q.name].Error {
				continue
			}
			if err != nil || !bytes.Equal(got, want.Documents[q.name].JSON) {
				t.Errorf("%s: %s is not as without faults: %v", filepath.Base(path), q.name, err)
			}
		}
		got, err := read[json.RawMessage](ctx, st.rows, rowSubject(hash))
		row, _ := json.Marshal(want.Row)
		if err != nil || !bytes.Equal(got, row) {
			t.Fatalf("%s: row %s, want %s: %v", filepath.Base(path), got, row, err)
		}
	}
	for name, want := range map[string]uint64{"results": uint64(len(questions) * len(files)), "rows": uint64(len(files)), "files": uint64(len(files))} {
		s := map[string]*hub.Stream{"results": st.results, "rows": st.rows, "files": st.files}[name]
		if state, err := s.State(ctx); err != nil || state.Messages != want || state.Last != want {
			t.Errorf("%s: %+v, %v; want %d messages, none of them replaced", name, state, err, want)
		}
	}
	if c, err := st.Check(ctx); err != nil || len(c.Wrong) > 0 {
		t.Errorf("check: %v, %v", c, err)
	}
	if n := strings.Count(pattern, "*"); n != 1 {
		t.Errorf("%q is no pattern", pattern)
	}
}
