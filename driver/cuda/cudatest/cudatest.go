//go:build linux

package cudatest

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/ashlar-mem/ashlar/driver/cuda"
)

//go:embed fakecuda
var source embed.FS

// Build puts the stand-in into a directory of the test and returns its path.
// Without a C compiler the test is skipped.
func Build(tb testing.TB) string {
	tb.Helper()
	binary, err := compile()
	if errors.Is(err, errNoCompiler) {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(tb.TempDir(), "libfakecuda.so")
	if err := os.WriteFile(path, binary, 0o700); err != nil {
		tb.Fatal(err)
	}
	return path
}

var errNoCompiler = errors.New("no C compiler (cc, gcc or clang), which the stand-in for NVIDIA's driver is built with")

// compile builds the library once for all tests of a process.
var compile = sync.OnceValues(func() ([]byte, error) {
	cc := compiler()
	if cc == "" {
		return nil, errNoCompiler
	}
	dir, err := os.MkdirTemp("", "fakecuda")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, source); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "fakecuda", "*.c"))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "libfakecuda.so")
	// Without -Bsymbolic a function of the program could take the place of one
	// of the library's own.
	args := append([]string{"-shared", "-fPIC", "-O1", "-std=gnu11", "-pthread", "-Wl,-Bsymbolic", "-o", path}, files...)
	if kinds := os.Getenv("ASHLAR_SANITIZE"); kinds != "" { // for programs that have the same
		args = append(args, "-fsanitize="+kinds, "-fno-sanitize-recover=all", "-g")
	}
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", cc, strings.Join(args, " "), err, out)
	}
	return os.ReadFile(path)
})

func compiler() string {
	for _, name := range []string{os.Getenv("CC"), "cc", "gcc", "clang"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Environ is what another process needs in its environment to use the stand-in
// at path.
func Environ(path string) []string {
	return []string{"ASHLAR_LIBCUDA=" + path, "ASHLAR_LIBNVML=" + path}
}

// Library is a stand-in loaded into this process.
type Library struct {
	Path   string
	handle uintptr
}

// Use builds the stand-in, loads it and makes it the driver that cuda.Open
// finds until the test ends. Settings are environment variables, NAME=VALUE,
// and have to be given here: the stand-in reads them when it starts.
func Use(tb testing.TB, settings ...string) *Library {
	tb.Helper()
	path := Build(tb)
	for _, s := range append(Environ(path), settings...) {
		name, value, _ := strings.Cut(s, "=")
		tb.Setenv(name, value)
	}
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		tb.Fatal(err)
	}
	return &Library{path, handle}
}

// Device opens the first GPU of the stand-in. When the test ends it closes it
// and checks that nothing was left behind.
func Device(tb testing.TB, lib *Library) *cuda.Device {
	tb.Helper()
	l, err := cuda.Open()
	if err != nil {
		tb.Fatal(err)
	}
	d, err := l.Device(0)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		lib.Heal()
		if err := d.Close(); err != nil {
			tb.Errorf("closing the device: %v", err)
		}
		for _, what := range Kinds {
			if n := lib.Count(what); n != 0 {
				tb.Errorf("%d %s left behind", n, what)
			}
		}
	})
	return d
}

// Kinds are the things that the stand-in counts.
var Kinds = []string{
	"allocations", "host", "managed", "pooled", "reservations", "handles", "mappings", "streams", "events", "modules", "graphs", "contexts",
}

// call calls a function of the stand-in that is not one of NVIDIA's.
func (l *Library) call(name string, args ...uintptr) uintptr {
	addr, err := purego.Dlsym(l.handle, name)
	if err != nil {
		panic(err) // the names are those of this package
	}
	r, _, _ := purego.SyscallN(addr, args...)
	return r
}

func (l *Library) callNamed(name, arg string, args ...uintptr) uintptr {
	text := append([]byte(arg), 0)
	var pin runtime.Pinner
	pin.Pin(&text[0])
	defer pin.Unpin()
	return l.call(name, append([]uintptr{uintptr(unsafe.Pointer(&text[0]))}, args...)...)
}

// Count returns how many of one of the [Kinds] exist now.
func (l *Library) Count(what string) int { return int(l.callNamed("fake_count", what)) }

// Fail lets the n-th call of a function from now on fail with a code of CUDA.
// An empty name stands for all functions but those whose failure nobody can
// make up for.
func (l *Library) Fail(name string, n, code int) {
	l.callNamed("fake_fail", name, uintptr(n), uintptr(code))
}

// Heal takes back every Fail.
func (l *Library) Heal() { l.call("fake_heal") }

// Calls counts the calls that Fail with an empty name counts.
func (l *Library) Calls() int { return int(l.call("fake_calls")) }

// SetMemory changes the size of the first GPU.
func (l *Library) SetMemory(bytes uint64) { l.call("fake_memory", uintptr(bytes)) }

// SetLazy lets work on streams wait until somebody waits for it, or until Run.
func (l *Library) SetLazy(lazy bool) {
	var n uintptr
	if lazy {
		n = 1
	}
	l.call("fake_lazy", n)
}

// Run does the work that waits.
func (l *Library) Run() { l.call("fake_run") }

// Exit lets the driver answer as it does while a process exits.
func (l *Library) Exit() { l.call("fake_exit") }

// Processes lets NVML report so many other processes with 1 GiB each, or
// processes without telling their memory.
func (l *Library) Processes(n int, withoutMemory bool) {
	var without uintptr
	if withoutMemory {
		without = 1
	}
	l.call("fake_processes", uintptr(n), without)
}

// ContextDepth is how many contexts are pushed on the calling thread.
func (l *Library) ContextDepth() int { return int(l.call("fake_context_depth")) }

// CaptureMode is the calling thread's capture mode.
func (l *Library) CaptureMode() cuda.CaptureMode {
	return cuda.CaptureMode(l.call("fake_capture_mode"))
}
