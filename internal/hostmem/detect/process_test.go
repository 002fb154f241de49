//go:build linux

package detect

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
)

// want is what must be found; a version is a pattern, empty if none is told.
type want struct {
	allocator  string
	version    string
	object     string
	how        string // a part of it
	confidence Confidence
}

func (w want) check(t *testing.T, r *Result, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	version := ""
	if r.Version != nil {
		version = *r.Version
	}
	if r.Allocator != w.allocator || !regexp.MustCompile("^("+w.version+")$").MatchString(version) {
		t.Errorf("allocator %s %q, want %s %s", r.Allocator, version, w.allocator, w.version)
	}
	if w.object != "" && r.Object != real(t, w.object) {
		t.Errorf("object %s, want %s", r.Object, real(t, w.object))
	}
	if !strings.Contains(r.How, w.how) {
		t.Errorf("how: %q, want %q in it", r.How, w.how)
	}
	if r.Confidence != w.confidence {
		t.Errorf("confidence %s, want %s (%s)", r.Confidence, w.confidence, r.How)
	}
}

func real(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	anyVersion  = `\d+\.\d+.*`
	tcVersion   = `2\.\d+.*`
	slotOfHold  = "the malloc slot of hold points into it; known by its exported symbols"
	linkOrder   = "link order: the memory of the process may not be read"
	stripped    = "static and stripped: texts"
	ownMalloc   = "the program has a malloc of its own"
	symbolTexts = "static: its symbol table"
)

// both looks with and without the right to read memory: the answer is the same,
// its confidence is not.
func both(t *testing.T, pid int, w want) *Result {
	t.Helper()
	r, err := inspect(pid, true)
	w.check(t, r, err)
	if w.how == slotOfHold {
		w.how, w.confidence = linkOrder, Likely
		without, err := inspect(pid, false)
		w.check(t, without, err)
	}
	return r
}

func TestGlibc(t *testing.T) {
	r := both(t, running(t, nil, compile(t, "hold")), want{Glibc, anyVersion, "", slotOfHold, Certain})
	if !strings.HasPrefix(filepath.Base(r.Object), "libc.so") && !strings.HasPrefix(filepath.Base(r.Object), "libc-") {
		t.Errorf("object %s", r.Object)
	}
	if r.Threads != 1 || *r.Arenas != 1 || *r.ArenaBytes != 0 {
		t.Errorf("%d threads, %d arenas with %d bytes", r.Threads, *r.Arenas, *r.ArenaBytes)
	}
	if r.RSSBytes == 0 || r.PSSBytes == 0 || r.PSSBytes > r.RSSBytes || r.HeapBytes < 100000 {
		t.Errorf("memory %+v", r.Memory)
	}
	if sum := r.HeapBytes + r.MmapBytes + r.StackBytes + r.FileBytes + r.SharedMem; sum != r.RSSBytes {
		t.Errorf("places have %d, RSS is %d", sum, r.RSSBytes)
	}
}

func TestPreloaded(t *testing.T) {
	program := compile(t, "hold")
	for _, test := range []struct {
		name    string
		object  func(*testing.T) string
		version string
	}{
		{Jemalloc, jemalloc, `5\.\d+\.\d+.*`},
		{Tcmalloc, tcmalloc, tcVersion},
		{Mimalloc, mimalloc, `\d+\.\d+\.\d+`},
	} {
		t.Run(test.name, func(t *testing.T) {
			lib := test.object(t)
			r := both(t, running(t, []string{"LD_PRELOAD=" + lib}, program), want{test.name, test.version, lib, slotOfHold, Certain})
			if len(r.IgnoredEnv) > 0 || len(r.Others) > 0 {
				t.Errorf("ignored %v, others %v", r.IgnoredEnv, r.Others)
			}
		})
	}
}

func TestLinked(t *testing.T) {
	lib := jemalloc(t)
	program := compile(t, "hold", "-Wl,--no-as-needed", lib)
	both(t, running(t, nil, program), want{Jemalloc, `5\..*`, lib, slotOfHold, Certain})
}

// The name of a file is no evidence.
func TestRenamedLibrary(t *testing.T) {
	lib := copyFile(t, jemalloc(t), filepath.Join(t.TempDir(), "libtcmalloc_minimal.so.4"))
	both(t, running(t, []string{"LD_PRELOAD=" + lib}, compile(t, "hold")), want{Jemalloc, `5\..*`, lib, slotOfHold, Certain})
}

func TestTwoPreloads(t *testing.T) {
	program := compile(t, "hold")
	first, second := tcmalloc(t), jemalloc(t)
	for range 2 {
		name, other := Tcmalloc, Jemalloc
		if strings.Contains(first, "jemalloc") {
			name, other = other, name
		}
		r := both(t, running(t, []string{"LD_PRELOAD=" + first + " " + second}, program), want{name, anyVersion, first, slotOfHold, Certain})
		if len(r.Others) != 1 || r.Others[0].Allocator != other || r.Others[0].How != loadedOnly {
			t.Errorf("others: %+v", r.Others)
		}
		if len(r.IgnoredEnv) != 1 || !strings.HasPrefix(r.IgnoredEnv[0].Why, second+" is loaded, but malloc is that of") {
			t.Errorf("ignored: %+v", r.IgnoredEnv)
		}
		first, second = second, first
	}
}

func TestDlopenedUnused(t *testing.T) {
	lib := tcmalloc(t)
	r := both(t, running(t, nil, compile(t, "hold", "-DDLOPEN", "-ldl"), lib), want{Glibc, anyVersion, "", slotOfHold, Certain})
	if len(r.Others) != 1 || r.Others[0].Allocator != Tcmalloc || r.Others[0].Object != real(t, lib) {
		t.Errorf("others: %+v", r.Others)
	}
}

// A slot that no call has gone through yet leads to a stub. The C library's own
// slot is bound at once.
func TestNotBoundYet(t *testing.T) {
	lib := jemalloc(t)
	program := compile(t, "hold", "-DNEVER", "-Wl,-z,lazy")
	for _, w := range []want{{Glibc, anyVersion, "", "the malloc slot of lib", Certain}, {Jemalloc, `5\..*`, lib, "the malloc slot of lib", Certain}} {
		r, err := inspect(running(t, preload(w.object), program), true)
		w.check(t, r, err)
	}
}

// If the program has taken the address of malloc, the slots of all others lead
// to the stub of the program.
func TestAddressTaken(t *testing.T) {
	lib := jemalloc(t)
	program := compile(t, "hold", "-DNEVER", "-DADDRESS", "-Wl,-z,lazy", "-no-pie", "-fno-pie")
	r, err := inspect(running(t, nil, program), true)
	want{Glibc, anyVersion, "", "link order: the loader has not looked malloc up yet", Likely}.check(t, r, err)
	r, err = inspect(running(t, preload(lib), program), true)
	w := want{Jemalloc, `5\..*`, lib, "", Certain}
	if err == nil && !strings.Contains(r.How, "slot") { // whether some library has called malloc is its own affair
		w.confidence = Likely
	}
	w.check(t, r, err)
}

func preload(lib string) []string {
	if lib == "" {
		return nil
	}
	return []string{"LD_PRELOAD=" + lib}
}

func TestStatic(t *testing.T) {
	je := library(t, "libjemalloc.a", "libjemalloc-dev")
	tc := library(t, "libtcmalloc_minimal.a", "libgoogle-perftools-dev")
	for _, test := range []struct {
		name    string
		flags   []string
		version string
	}{
		{Glibc, nil, ""},
		{Jemalloc, []string{je, "-lm"}, `5\..*`},
		{Tcmalloc, []string{tc, "-lstdc++", "-lm"}, tcVersion},
	} {
		t.Run(test.name, func(t *testing.T) {
			program := compile(t, "hold", append([]string{"-static", "-Wl,-w"}, test.flags...)...)
			env := []string{"LD_PRELOAD=" + jemalloc(t)}
			r := both(t, running(t, env, program), want{test.name, test.version, program, symbolTexts, Certain})
			if len(r.IgnoredEnv) != 1 || r.IgnoredEnv[0].Why != "the program is static: no loader reads it" {
				t.Errorf("ignored: %+v", r.IgnoredEnv)
			}
			program = strip(t, program)
			both(t, running(t, nil, program), want{test.name, test.version, program, stripped, Likely})
		})
	}
}

// Only the allocator is static, as in many servers.
func TestStaticAllocatorInDynamicProgram(t *testing.T) {
	je := library(t, "libjemalloc.a", "libjemalloc-dev")
	program := compile(t, "hold", je, "-lm", "-lpthread", "-ldl")
	both(t, running(t, nil, program), want{Jemalloc, `5\..*`, program, ownMalloc, Certain})
	program = strip(t, program)
	both(t, running(t, nil, program), want{Jemalloc, `5\..*`, program, ownMalloc, Likely})
}

func TestMusl(t *testing.T) {
	program := compileWith(t, "musl-gcc", "hold", "testdata/hold.c")
	both(t, running(t, nil, program), want{Musl, anyVersion, "", slotOfHold, Certain})
	program = compileWith(t, "musl-gcc", "hold", "testdata/hold.c", "-static")
	both(t, running(t, nil, program), want{Musl, "", program, symbolTexts, Certain})
	program = strip(t, program)
	both(t, running(t, nil, program), want{Unknown, "", program, "no text in it tells", NotCertain})
}

func TestGo(t *testing.T) {
	program := filepath.Join(t.TempDir(), "hold")
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "./testdata/gohold")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	env := []string{"LD_PRELOAD=libjemalloc.so.2", "MALLOC_ARENA_MAX=2"}
	r := both(t, running(t, env, program), want{Go, regexp.QuoteMeta(runtime.Version()), program, "build information", Certain})
	if len(r.Notes) != 1 || r.Notes[0] != "Go runtime: LD_PRELOAD has no effect" {
		t.Errorf("notes: %q", r.Notes)
	}
	if len(r.IgnoredEnv) != 2 {
		t.Errorf("ignored: %+v", r.IgnoredEnv)
	}
}

// A process may run another program, or end, while it is looked at. Then the
// answer is about one of the programs, or that it has ended, and nothing else.
func TestChanges(t *testing.T) {
	look := func(pid int) bool {
		r, err := Alone(pid)
		if errors.Is(err, proc.ErrNoProcess) {
			return false
		}
		if err != nil || r.Allocator == Unknown {
			t.Errorf("%+v, %v", r, err)
			return false
		}
		return true
	}
	for range 50 {
		// It begins to change when it is allowed to: it is seen at least once.
		cmd := exec.Command("sh", "-c", "read go; exec env sh -c 'exec true'")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if !look(cmd.Process.Pid) {
			t.Error("it was not seen")
		}
		in.Close()
		for look(cmd.Process.Pid) {
		}
		cmd.Wait()
	}
}
