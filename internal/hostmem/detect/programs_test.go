//go:build linux

package detect

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// compile builds testdata/hold.c.
func compile(t *testing.T, name string, flags ...string) string {
	t.Helper()
	return compileWith(t, "cc", name, append([]string{"testdata/hold.c"}, flags...)...)
}

func compileWith(t *testing.T, compiler, name string, flags ...string) string {
	t.Helper()
	cc, err := exec.LookPath(compiler)
	if err != nil {
		t.Skipf("there is no %s", compiler)
	}
	out := filepath.Join(t.TempDir(), name)
	args := append([]string{"-O1", "-o", out}, flags...)
	if text, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("cc %s: %v\n%s", strings.Join(args, " "), err, text)
	}
	return out
}

// library finds a file of an allocator's package, or skips the test.
func library(t *testing.T, name, pkg string) string {
	t.Helper()
	for _, dir := range []string{"/usr/lib/*-linux-gnu", "/lib/*-linux-gnu", "/usr/lib64", "/usr/lib"} {
		found, err := filepath.Glob(filepath.Join(dir, name))
		if err == nil && len(found) > 0 {
			return found[0]
		}
	}
	t.Skipf("there is no %s (apt-get install %s)", name, pkg)
	return ""
}

func jemalloc(t *testing.T) string { return library(t, "libjemalloc.so.2", "libjemalloc2") }
func tcmalloc(t *testing.T) string {
	return library(t, "libtcmalloc_minimal.so.4", "libtcmalloc-minimal4")
}
func mimalloc(t *testing.T) string { return library(t, "libmimalloc.so.*", "libmimalloc2.0") }

// running starts a program with variables added to its environment and waits
// until it says that it is up.
func running(t *testing.T, env []string, argv ...string) int {
	t.Helper()
	return start(t, exec.Command(argv[0], argv[1:]...), env)
}

func start(t *testing.T, cmd *exec.Cmd, env []string) int {
	t.Helper()
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) || line != "up\n" {
		t.Fatalf("%v said %q, %v", cmd.Args, line, err)
	}
	return cmd.Process.Pid
}

func copyFile(t *testing.T, from, to string) string {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return to
}

func strip(t *testing.T, file string) string {
	t.Helper()
	out := file + ".stripped"
	if text, err := exec.Command("strip", "-o", out, file).CombinedOutput(); err != nil {
		t.Skipf("strip: %v\n%s", err, text)
	}
	return out
}

// publicDir is a directory that every user may enter.
func publicDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "detect")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
