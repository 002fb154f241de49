//go:build linux

package detect

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A library that is upgraded or removed while it is in use is still loaded,
// whatever its name leads to now.
func TestPreloadReplaced(t *testing.T) {
	program := compile(t, "hold")
	dir := t.TempDir()
	inDir := func(name string) string { return filepath.Join(dir, name) }
	link := func(to, name string) {
		t.Helper()
		if err := os.Remove(inDir(name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.Symlink(to, inDir(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"libtc.so.4.1", "gone.so.2.1", "plain.so", "another-name"} {
		copyFile(t, tcmalloc(t), inDir(name))
	}
	link("libtc.so.4.1", "libtc.so.4")
	link("gone.so.2.1", "gone.so.2")
	link("another-name", "link.so")
	const nameless = "a link that is gone with a file of another name"
	pids := map[string]int{}
	for name, env := range map[string][]string{
		"a link that leads to a newer version": {"LD_PRELOAD=" + inDir("libtc.so.4")},
		"a name without a path":                {"LD_PRELOAD=libtc.so.4", "LD_LIBRARY_PATH=" + dir},
		"a link that is gone":                  {"LD_PRELOAD=" + inDir("gone.so.2")},
		nameless:                               {"LD_PRELOAD=" + inDir("link.so")},
		"a file that is gone":                  {"LD_PRELOAD=./plain.so"},
		"a file that never was":                {"LD_PRELOAD=" + inDir("never.so")},
	} {
		cmd := exec.Command(program)
		cmd.Dir = dir
		pids[name] = start(t, cmd, env)
	}
	copyFile(t, tcmalloc(t), inDir("libtc.so.4.2"))
	link("libtc.so.4.2", "libtc.so.4")
	for _, name := range []string{"libtc.so.4.1", "gone.so.2", "gone.so.2.1", "plain.so", "link.so", "another-name"} {
		if err := os.Remove(inDir(name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, pid := range pids {
		for _, withMemory := range []bool{true, false} {
			if !withMemory && os.Getuid() != 0 {
				continue // nothing is left to be read
			}
			r, err := inspect(pid, withMemory)
			if err != nil {
				t.Fatal(err)
			}
			want, ignored := Tcmalloc, 0
			if name == "a file that never was" {
				want, ignored = Glibc, 1
			}
			if name == nameless && !withMemory {
				want = Glibc // its place in the order is unknown
			}
			if r.Allocator != want || len(r.IgnoredEnv) != ignored {
				t.Errorf("%s, memory %v: %s, ignored %+v", name, withMemory, r.Allocator, r.IgnoredEnv)
			}
		}
	}
}

// Where neither the memory nor the removed files can be read, nothing is said
// about what may be among them.
func TestPreloadUnread(t *testing.T) {
	target := &target{unread: true, program: &object{image: &image{interp: "/lib/ld.so"}}}
	if why := target.ignoredPreloads("libtc.so.4", Finding{}, nil); len(why) > 0 {
		t.Errorf("%q", why)
	}
	target.unread = false
	if why := target.ignoredPreloads("libtc.so.4", Finding{}, nil); len(why) != 1 {
		t.Errorf("%q", why)
	}
}
