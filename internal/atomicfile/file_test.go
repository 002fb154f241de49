//go:build linux

package atomicfile

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// target is what a path is before it is written to.
type target struct {
	name    string
	path    string // in the folder of the test, unless it is absolute
	prepare func(t *testing.T, dir string)
	refusal string // with DIR for the folder; "" if it can be written to
	regular string // the ordinary file that has the text afterwards; "" for none
}

var targets = []target{
	{name: "missing", path: "out", regular: "out"},
	{name: "regular", path: "old", regular: "old"},
	{name: "link", path: "link", prepare: links("link", "old"), regular: "old"},
	{name: "links", path: "first", prepare: links("first", "second", "second", "old"), regular: "old"},
	{name: "dangling link", path: "link", prepare: links("link", "out"), regular: "out"},
	{name: "dangling links", path: "first", prepare: links("first", "second", "second", "out"), regular: "out"},
	{name: "dangling link behind a linked folder", path: "near/link", prepare: links("near", "far/folder", "far/folder/link", "../out"), regular: "far/out"},
	{name: "link to nowhere", path: "link", prepare: links("link", "nowhere/out"), refusal: "DIR/link cannot be written: no such file or directory"},
	{name: "link to itself", path: "link", prepare: links("link", "link"), refusal: "DIR/link cannot be written: too many levels of symbolic links"},
	{name: "folder", path: "far", refusal: "DIR/far is a directory: name a file in it"},
	{name: "link to a folder", path: "link", prepare: links("link", "far"), refusal: "DIR/link is a directory: name a file in it"},
	{name: "root", path: "/", refusal: "/ is a directory: name a file in it"},
	{name: "in a missing folder", path: "nowhere/out", refusal: "DIR/nowhere/out cannot be written: no such file or directory"},
	{name: "below a file", path: "old/out", refusal: "DIR/old/out cannot be written: not a directory"},
	{name: "odd name", path: "a*b\\c", regular: "a*b\\c"},
}

// links makes links, each given by its name and where it leads.
func links(pairs ...string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		for i := 0; i < len(pairs); i += 2 {
			if err := os.Symlink(pairs[i+1], filepath.Join(dir, pairs[i])); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// set makes the folder for one target and returns the path to write to.
func (k target) set(t *testing.T) (dir, path string) {
	dir = t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "far", "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "old"), []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if k.prepare != nil {
		k.prepare(t, dir)
	}
	if filepath.IsAbs(k.path) {
		return dir, k.path
	}
	return dir, filepath.Join(dir, k.path)
}

// tree lists a folder: names, kinds, where links lead, and the texts of
// ordinary files.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		text := []byte(info.Mode().Type().String())
		switch info.Mode().Type() {
		case 0:
			text, err = os.ReadFile(path)
		case os.ModeSymlink:
			to, _ := os.Readlink(path)
			text = append(text, to...)
		}
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func same(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name := range got {
		if got[name] != want[name] {
			t.Errorf("%s is %q, want %q", name, got[name], want[name])
		}
	}
	for name := range want {
		if _, ok := got[name]; !ok {
			t.Errorf("%s is gone", name)
		}
	}
}

func TestTargets(t *testing.T) {
	t.Run("nameless", testTargets)
	named(t)
	t.Run("named", testTargets)
}

func testTargets(t *testing.T) {
	for _, k := range targets {
		t.Run(k.name, func(t *testing.T) {
			dir, path := k.set(t)
			want := tree(t, dir)
			for _, commit := range []bool{false, true} {
				f, err := Create(path)
				if k.refusal != "" {
					refusal := strings.ReplaceAll(k.refusal, "DIR", dir)
					if err == nil || err.Error() != refusal {
						t.Fatalf("got  %v\nwant %s", err, refusal)
					}
					same(t, tree(t, dir), want)
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if n, err := io.WriteString(f, "new"); n != 3 || err != nil || f.Size() != 3 {
					t.Errorf("%d of %d bytes, %v", n, f.Size(), err)
				}
				if commit {
					if err := f.Commit(); err != nil {
						t.Error(err)
					}
					if k.regular != "" {
						want[k.regular] = "new"
					}
				}
				f.Abort() // as a deferred one
				same(t, tree(t, dir), want)
			}
		})
	}
	if _, err := Create(""); err == nil || err.Error() != "the name of the file is empty: name a file to be written" {
		t.Errorf("no name: %v", err)
	}
}

// A pipe gets the bytes and stays, also behind a link.
func TestPipe(t *testing.T) {
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	links("link", "pipe")(t, dir)
	want := tree(t, dir)
	for _, path := range []string{pipe, link} {
		read := make(chan string)
		go func() {
			text, err := os.ReadFile(pipe)
			if err != nil {
				t.Error(err)
			}
			read <- string(text)
		}()
		f, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Abort()
		if _, err := io.WriteString(f, "new"); err != nil {
			t.Error(err)
		}
		if err := f.Commit(); err != nil || f.Size() != 3 {
			t.Errorf("%v, %d bytes", err, f.Size())
		}
		if got := <-read; got != "new" {
			t.Errorf("read %q", got)
		}
		same(t, tree(t, dir), want)
	}
}

// A device stays, also behind a link.
func TestDevice(t *testing.T) {
	dir := t.TempDir()
	device, link := os.DevNull, filepath.Join(dir, "link")
	if os.Getuid() == 0 { // who could replace the machine's own
		device = filepath.Join(dir, "null")
		if err := syscall.Mknod(device, syscall.S_IFCHR|0o666, 1<<8|3); err != nil {
			t.Skip(err)
		}
	}
	links("link", device)(t, dir)
	want := tree(t, dir)
	for _, path := range []string{device, link} {
		f, err := Create(path)
		if err != nil {
			t.Skip(err) // a file system without devices
		}
		if _, err := io.WriteString(f, "new"); err != nil {
			t.Error(err)
		}
		if err := f.Commit(); err != nil || f.Size() != 3 {
			t.Errorf("%v, %d bytes", err, f.Size())
		}
		same(t, tree(t, dir), want)
	}
}

func TestPermissions(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]os.FileMode{"old": 0o640, "out": 0o644} {
		path := filepath.Join(dir, name)
		if name == "old" {
			if err := os.WriteFile(path, nil, want); err != nil {
				t.Fatal(err)
			}
		}
		f, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Commit(); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// A disk that does not take the file: the old one stays, and the error names it
// and not the temporary one.
func TestFailure(t *testing.T) {
	dir, path := target{path: "old"}.set(t)
	want := tree(t, dir)
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	f.file.Close() // stands in for a full disk
	for _, err := range []error{second(f.Write([]byte("new"))), f.Commit()} {
		if err == nil || err.Error() != path+" cannot be written: file already closed" {
			t.Errorf("got %v", err)
		}
	}
	f.Abort()
	same(t, tree(t, dir), want)
}

// A complete file has its name only after Commit, and Abort still removes it.
func TestComplete(t *testing.T) {
	for _, commit := range []bool{false, true} {
		dir, path := target{path: "old"}.set(t)
		want := tree(t, dir)
		f, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, "new"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := f.Complete(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := io.WriteString(f, "more"); err == nil {
			t.Error("a complete file is written to")
		}
		if old, err := os.ReadFile(path); err != nil || string(old) != "old" {
			t.Errorf("before Commit: %q, %v", old, err)
		}
		if commit {
			if err := f.Commit(); err != nil {
				t.Error(err)
			}
			want[filepath.Base(path)] = "new"
		}
		f.Abort()
		same(t, tree(t, dir), want)
	}
}

// A program that ends without Abort leaves what is complete and nothing else.
func TestRemoveUnfinished(t *testing.T) {
	named(t)
	dir, path := target{path: "old"}.set(t)
	want := tree(t, dir)
	for _, name := range []string{path, path + "er"} {
		if _, err := Create(name); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	RemoveUnfinished()
	want["out"] = ""
	same(t, tree(t, dir), want)
}

// parts lists the hidden files of a folder.
func parts(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, partPattern))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// named has files with hidden names, as on file systems that need them.
func named(t *testing.T) {
	canBeNameless = false
	t.Cleanup(func() { canBeNameless = true })
}

// killedIn is the folder in which TestKilled writes and dies; it is not set in its
// parent.
const killedIn = "ATOMICFILE_KILLED_IN"

// A process that is killed leaves nothing, or a hidden file that the next one who
// writes there removes when it is old, but not that of a process which is alive.
func TestKilled(t *testing.T) {
	if dir := os.Getenv(killedIn); dir != "" {
		canBeNameless = filepath.Base(dir) == "nameless"
		f, err := Create(filepath.Join(dir, "out"))
		if err == nil {
			_, err = io.WriteString(f, "new")
		}
		if err == nil {
			err = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		t.Fatal(err)
	}
	for name, left := range map[string]int{"nameless": 0, "named": 1} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if f := createNameless(dir); name == "nameless" && f == nil {
			continue // a file system that cannot
		}
		cmd := exec.Command(os.Args[0], "-test.run", "^TestKilled$")
		cmd.Env = append(os.Environ(), killedIn+"="+dir)
		out, _ := cmd.CombinedOutput()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
			t.Fatalf("%v\n%s", cmd.ProcessState, out)
		}
		if got := len(tree(t, dir)) - 1; got != left || len(parts(t, dir)) != left {
			t.Errorf("%s: %d files are left, want %d", name, got, left)
		}
	}
}

func TestStale(t *testing.T) {
	named(t)
	dir := t.TempDir()
	alive, err := Create(filepath.Join(dir, "alive"))
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Abort()
	young, old := filepath.Join(dir, ".ashlar-1.part"), filepath.Join(dir, ".ashlar-2.part")
	for _, name := range []string{young, old} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{alive.part, old} {
		if err := os.Chtimes(name, time.Time{}, time.Now().Add(-2*staleAge)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	f.Abort()
	want := []string{alive.part, young}
	slices.Sort(want)
	if got := parts(t, dir); !slices.Equal(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}
	if err := alive.Commit(); err != nil {
		t.Error(err)
	}
}

func second(_ int, err error) error { return err }
