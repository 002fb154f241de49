//go:build linux

package detect

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
)

// A program may be started by naming it to the loader.
func TestLoaderAsProgram(t *testing.T) {
	loader, err := filepath.Glob("/lib64/ld-linux-*.so.*")
	if err != nil || len(loader) == 0 {
		t.Skip("the loader is elsewhere")
	}
	lib := jemalloc(t)
	r, err := inspect(running(t, []string{"LD_PRELOAD=" + lib}, loader[0], compile(t, "hold")), true)
	want{Jemalloc, `5\..*`, lib, slotOfHold, Certain}.check(t, r, err)
}

// A library that was replaced while the process runs, and a process that sees
// other files under the same names than we do.
func TestFilesOfTheProcess(t *testing.T) {
	program := compile(t, "hold")
	dir := t.TempDir()
	lib := copyFile(t, jemalloc(t), filepath.Join(dir, "libx.so"))
	pid := running(t, []string{"LD_PRELOAD=" + lib}, program)
	if err := os.Remove(lib); err != nil {
		t.Fatal(err)
	}
	copyFile(t, tcmalloc(t), lib)
	r, err := inspect(pid, true)
	want{Jemalloc, `5\..*`, "", slotOfHold, Certain}.check(t, r, err)
	if r.Object != lib || len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "the file of "+lib+" was removed or replaced") {
		t.Errorf("object %s, notes %q", r.Object, r.Notes)
	}
}

// Objects read alike from the file and from memory.
func TestImageOfMemory(t *testing.T) {
	lib := jemalloc(t)
	pid := running(t, []string{"LD_PRELOAD=" + lib}, compile(t, "hold"))
	target, err := attach(pid, true)
	if err != nil {
		t.Fatal(err)
	}
	defer target.close()
	if len(target.objects) < 4 || len(target.order) < 4 {
		t.Fatalf("%d objects, %d in order", len(target.objects), len(target.order))
	}
	for _, o := range target.objects {
		m, err := newImageOfMemory(target.mem, o.base)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"malloc", "mallctl", "gnu_get_libc_version", "no_such_name"} {
			a, ok := o.defined(name)
			b, same := m.defined(name)
			if a != b || ok != same {
				t.Errorf("%s of %s: %x in the file, %x in memory", name, o.name(), a, b)
			}
		}
		if got, want := fmt.Sprint(m.slots("malloc"), m.needed, m.soname), fmt.Sprint(o.slots("malloc"), o.needed, o.soname); got != want {
			t.Errorf("%s: memory has %s, the file %s", o.name(), got, want)
		}
		inMemory := &object{image: m, path: o.path}
		if name, _, _ := identify(o); name == Jemalloc {
			v := versionOf(name, inMemory)
			if other, _, _ := identify(inMemory); other != name || v == nil || *v != *versionOf(name, o) {
				t.Errorf("in memory it is %s %v", other, v)
			}
		}
	}
}

func TestArenas(t *testing.T) {
	pid := running(t, nil, compile(t, "hold", "-DTHREADS=5", "-lpthread"))
	r, err := inspect(pid, true)
	if err != nil {
		t.Fatal(err)
	}
	// Eight arenas for each core are allowed: every thread has its own.
	if r.Threads != 6 || *r.Arenas != 6 || *r.ArenaBytes < 5*100000 || *r.ArenaBytes > r.MmapBytes {
		t.Errorf("%d threads, %d arenas with %d bytes", r.Threads, *r.Arenas, *r.ArenaBytes)
	}
	pid = running(t, []string{"MALLOC_ARENA_MAX=2"}, compile(t, "hold", "-DTHREADS=5", "-lpthread"))
	if r, err = inspect(pid, true); err != nil || *r.Arenas != 2 {
		t.Errorf("%d arenas, %v", *r.Arenas, err)
	}
}

// TestMain lets the test be run again as another user.
func TestMain(m *testing.M) {
	if pid := os.Getenv("DETECT_AS_NOBODY"); pid != "" {
		var n int
		fmt.Sscan(pid, &n)
		_, err := Process(n)
		fmt.Print(errors.Is(err, proc.ErrPermission), " ", err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestAnotherUser(t *testing.T) {
	const nobody = 65534
	if os.Getuid() != 0 {
		if _, err := Process(1); !errors.Is(err, proc.ErrPermission) {
			t.Errorf("the first process of the machine: %v", err)
		}
		return
	}
	// Where the test itself lies, others may not go.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(copyFile(t, self, filepath.Join(publicDir(t), "detect.test")))
	cmd.Env = []string{fmt.Sprintf("DETECT_AS_NOBODY=%d", os.Getpid())}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	said := fmt.Sprintf("true process %d belongs to root: only its user or root may look into it", os.Getpid())
	if err != nil || string(out) != said {
		t.Errorf("%v, %q, want %q", err, out, said)
	}

	// One's own process may be closed too.
	closed := exec.Command(copyFile(t, compile(t, "hold", "-DCLOSED"), filepath.Join(publicDir(t), "hold")))
	closed.SysProcAttr = cmd.SysProcAttr
	pid := start(t, closed, nil)
	again := exec.Command(cmd.Path)
	again.Env = []string{fmt.Sprintf("DETECT_AS_NOBODY=%d", pid)}
	again.SysProcAttr, again.Dir = cmd.SysProcAttr, "/"
	out, err = again.CombinedOutput()
	said = fmt.Sprintf("true process %d is yours, but is not dumpable: ", pid)
	if err != nil || !strings.HasPrefix(string(out), said) {
		t.Errorf("%v, %q, want %q", err, out, said)
	}

	// Root may look into the process of another.
	hold := exec.Command(copyFile(t, compile(t, "hold"), filepath.Join(publicDir(t), "hold")))
	hold.SysProcAttr = cmd.SysProcAttr
	r, err := inspect(start(t, hold, nil), true)
	want{Glibc, anyVersion, "", slotOfHold, Certain}.check(t, r, err)
}

// A preloaded wrapper is not known, but what stands behind it is.
func TestWrapper(t *testing.T) {
	wrap := compileWith(t, "cc", "libwrap.so", "-shared", "-fPIC", "testdata/wrap.c", "-ldl")
	r, err := inspect(running(t, preload(wrap), compile(t, "hold")), true)
	want{Unknown, "", wrap, "the malloc slot of hold points into it; what it is, is not known", NotCertain}.check(t, r, err)
	if len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "if libwrap.so only passes calls on, it is to glibc in ") {
		t.Errorf("notes: %q", r.Notes)
	}
}

// What is preloaded behind a wrapper may be used by it; what comes after that is
// not, and nothing is behind a malloc that cannot pass calls on.
func TestBehindWrapper(t *testing.T) {
	wrap := compileWith(t, "cc", "libwrap.so", "-shared", "-fPIC", "testdata/wrap.c", "-ldl")
	own := compileWith(t, "cc", "libown.so", "-shared", "-fPIC", "testdata/own.c")
	other := compileWith(t, "cc", "libother.so", "-shared", "-fPIC", "-DOTHER_NAME", "testdata/wrap.c")
	program, je, tc := compile(t, "hold"), jemalloc(t), tcmalloc(t)
	for _, test := range []struct {
		preload []string
		ignored []string
		behind  string
	}{
		{[]string{wrap, je}, nil, "loaded; it may be used behind libwrap.so"},
		{[]string{wrap, je, tc}, []string{tc + " is loaded, but malloc is that of " + wrap + ", or behind it that of " + real(t, je)}, "loaded; it may be used behind libwrap.so"},
		{[]string{other}, nil, ""},
		{[]string{own, je}, []string{je + " is loaded, but malloc is that of " + own}, loadedOnly},
	} {
		pid := running(t, preload(strings.Join(test.preload, ":")), program)
		for _, withMemory := range []bool{true, false} {
			r, err := inspect(pid, withMemory)
			if err != nil {
				t.Fatal(err)
			}
			var ignored []string
			for _, i := range r.IgnoredEnv {
				ignored = append(ignored, i.Why)
			}
			if !slices.Equal(ignored, test.ignored) {
				t.Errorf("%v, memory %v: ignored %q", test.preload, withMemory, ignored)
			}
			if test.behind == "" {
				if len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "if libother.so only passes calls on, it is to glibc in ") {
					t.Errorf("%v, memory %v: notes %q", test.preload, withMemory, r.Notes)
				}
				continue
			}
			i := slices.IndexFunc(r.Others, func(o Finding) bool { return o.Allocator == Jemalloc })
			if i < 0 || r.Others[i].How != test.behind || len(r.Notes) > 0 != (test.behind != loadedOnly) {
				t.Errorf("%v, memory %v: others %+v, notes %q", test.preload, withMemory, r.Others, r.Notes)
			}
		}
	}
}

func TestOwnNames(t *testing.T) {
	program := compile(t, "hold", "testdata/inside.c")
	r, err := inspect(running(t, []string{"JE_MALLOC_CONF=narenas:1", "TCMALLOC_X=1"}, program), true)
	want{Glibc, anyVersion, "", slotOfHold, Certain}.check(t, r, err)
	if len(r.Others) != 1 || r.Others[0].Allocator != Jemalloc || r.Others[0].Object != program || r.Others[0].How != ownNames {
		t.Errorf("others: %+v", r.Others)
	}
	if len(r.IgnoredEnv) != 1 || r.IgnoredEnv[0].Name != "TCMALLOC_X" {
		t.Errorf("ignored: %+v", r.IgnoredEnv)
	}
	const note = "hold may take memory from jemalloc by calling it by names of its own"
	if len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], note) {
		t.Errorf("notes: %q", r.Notes)
	}

	// The same in one file: not all of its names have the prefix.
	program = compile(t, "hold", "testdata/inside.c", "-DPARTLY", "-static")
	r, err = inspect(running(t, nil, program), true)
	want{Glibc, "", program, symbolTexts, Certain}.check(t, r, err)
	if len(r.Others) != 1 || r.Others[0].Allocator != Jemalloc || r.Others[0].How != ownNames || len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], note) {
		t.Errorf("others: %+v, notes: %q", r.Others, r.Notes)
	}
}

func TestStaticMallocOfItsOwn(t *testing.T) {
	program := compile(t, "hold", "testdata/own.c", "-static")
	r, err := inspect(running(t, nil, program), true)
	want{Unknown, "", program, "static and has a malloc of its own, which is none", NotCertain}.check(t, r, err)
	r, err = inspect(running(t, nil, strip(t, program)), true)
	want{Unknown, "", program + ".stripped", "static and stripped, and no text in it tells", NotCertain}.check(t, r, err)
}

// In a container the same names are other files, and links lead elsewhere.
func TestContainer(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can change the root of a process")
	}
	program := compile(t, "hold")
	root := publicDir(t)
	text, err := exec.Command("ldd", program).CombinedOutput()
	if err != nil {
		t.Skipf("ldd: %v", err)
	}
	for _, word := range strings.Fields(string(text)) {
		if strings.HasPrefix(word, "/") {
			copyFile(t, word, root+word)
		}
	}
	for _, word := range []string{"libm.so.6", "libstdc++.so.6", "libgcc_s.so.1"} { // what jemalloc needs
		lib := library(t, word, "libstdc++6")
		copyFile(t, lib, root+lib)
	}
	copyFile(t, program, root+"/hold")
	copyFile(t, jemalloc(t), root+"/opt/real/libm.so")
	// Outside this path does not exist.
	if err := os.Symlink("/opt/real", root+"/opt/link"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/hold")
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	cmd.Dir = "/"
	pid := start(t, cmd, []string{"LD_PRELOAD=/opt/link/libm.so"})
	for _, withMemory := range []bool{true, false} {
		r, err := inspect(pid, withMemory)
		w := want{Jemalloc, `5\..*`, "", slotOfHold, Certain}
		if !withMemory {
			w.how, w.confidence = linkOrder, Likely
		}
		w.check(t, r, err)
		if len(r.IgnoredEnv) > 0 {
			t.Errorf("ignored: %+v", r.IgnoredEnv)
		}
		if r.Object != "/opt/real/libm.so" || r.Executable != "/hold" {
			t.Errorf("object %s of %s: not as the process sees them", r.Object, r.Executable)
		}
	}
}

func TestPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	script := "import sys; sys.stdout.write('up\\n'); sys.stdout.flush(); sys.stdin.read()"
	for _, lib := range []string{"", jemalloc(t)} {
		r, err := inspect(running(t, append(preload(lib), "PYTHONMALLOC=malloc"), python, "-c", script), true)
		w := want{Glibc, anyVersion, lib, "the malloc slot of ", Certain}
		if lib != "" {
			w.allocator = Jemalloc
		}
		w.check(t, r, err)
		if len(r.Env) == 0 || len(r.IgnoredEnv) > 0 || len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "PYTHONMALLOC=malloc: ") {
			t.Errorf("environment %v, ignored %v, notes %q", r.Env, r.IgnoredEnv, r.Notes)
		}
	}
}

func TestNoProcess(t *testing.T) {
	for _, pid := range []int{0, -1, 1 << 22, 1 << 30} {
		if _, err := Process(pid); !errors.Is(err, proc.ErrNoProcess) {
			t.Errorf("process %d: %v", pid, err)
		}
	}
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	for { // until it is a zombie
		if s, err := proc.ReadStat(cmd.Process.Pid); err != nil || s.Ended() {
			break
		}
	}
	said := fmt.Sprintf("process %d is a zombie: it has ended, and its parent (process %d) has not asked for its status", cmd.Process.Pid, os.Getpid())
	if _, err := Process(cmd.Process.Pid); !errors.Is(err, proc.ErrNoProcess) || !errors.Is(err, ErrZombie) || err.Error() != said {
		t.Errorf("a process that has ended: %v", err)
	}
}
