package main

import (
	"debug/elf"
	"fmt"
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// shimLibrary is the path of the library, built once.
func shimLibrary(t *testing.T) string {
	t.Helper()
	if !build.Default.CgoEnabled {
		t.Skip("cgo is off: there is no library to test")
	}
	path, err := builtLibrary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var builtLibrary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "libashlar")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "libashlar.so")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", path, ".")
	if flags := strings.Join(sanitizers(), " "); flags != "" {
		cmd.Env = append(os.Environ(), "CGO_CFLAGS=-O1 "+flags, "CGO_CXXFLAGS=-O1 "+flags, "CGO_LDFLAGS="+flags)
	}
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, text)
	}
	return path, nil
})

// sanitizers are the flags by which a compiler checks the library's C and C++ and the programs that call it, if
// ASHLAR_SANITIZE names some, such as address,undefined. Go is left as it is.
func sanitizers() []string {
	kinds := os.Getenv("ASHLAR_SANITIZE")
	if kinds == "" {
		return nil
	}
	return []string{"-fsanitize=" + kinds, "-fno-sanitize-recover=all", "-g"}
}

// compileStandin builds a C++ program or library of testdata/standin.
func compileStandin(t *testing.T, out string, args ...string) {
	t.Helper()
	args = slices.Concat(sanitizers(), []string{"-std=c++17", "-Wall", "-Wextra", "-Werror", "-o", out}, args)
	if text, err := exec.Command("g++", args...).CombinedOutput(); err != nil {
		t.Fatalf("g++ %s: %v\n%s", strings.Join(args, " "), err, text)
	}
}

// runStandin runs a program on a simulated device with little memory.
func runStandin(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "ASHLAR_DRIVER=sim", "ASHLAR_SIM_MEMORY=268435456", "ASHLAR_CONF=", "LD_LIBRARY_PATH="+filepath.Dir(program))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || string(out) != "ok\n" {
		t.Fatalf("%s: %v\n%s%s", filepath.Base(program), err, out, stderr.String())
	}
	return stderr.String()
}

func needCompiler(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("no g++: the exception shim is not tested")
	}
}

// The exception must be PyTorch's own by type, whichever of the two strings
// PyTorch was built with, and whatever its files are called.
func TestOutOfMemoryIsPyTorchs(t *testing.T) {
	short.Skip(t)
	needCompiler(t)
	library := shimLibrary(t)
	for _, c := range []struct {
		name, c10, cuda string
		flags           []string
	}{
		{name: "new string", c10: "libc10.so", cuda: "libc10_cuda.so"},
		{name: "old string", c10: "libc10.so", cuda: "libc10_cuda.so", flags: []string{"-D_GLIBCXX_USE_CXX11_ABI=0"}},
		{name: "renamed", c10: "libc10-1a2b3c4d.so", cuda: "libc10_cuda-5e6f.so.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			at := func(name string) string { return filepath.Join(dir, name) }
			with := func(args ...string) []string { return append(args, c.flags...) }
			compileStandin(t, at(c.c10), with("-shared", "-fPIC", "-Wl,-soname,"+c.c10, "testdata/standin/c10.cpp")...)
			compileStandin(t, at(c.cuda), with("-shared", "-fPIC", "-Wl,-soname,"+c.cuda, "testdata/standin/c10_cuda.cpp", at(c.c10))...)
			compileStandin(t, at("oom"), with("testdata/standin/oom.cpp", at(c.c10), "-ldl")...)
			if said := runStandin(t, at("oom"), library, at(c.cuda)); said != "" {
				t.Errorf("standard error: %s", said)
			}
		})
	}
}

// The functions with C++ types, and failures without PyTorch.
func TestPoolFunctions(t *testing.T) {
	needCompiler(t)
	library := shimLibrary(t)
	program := filepath.Join(t.TempDir(), "pools")
	compileStandin(t, program, "testdata/standin/pools.cpp", "-ldl")
	said := runStandin(t, program, library)
	if !strings.Contains(said, "ashlar: end of a pool: ") {
		t.Errorf("nothing was said about the end of an unknown pool: %q", said)
	}
}

// What PyTorch looks up must be there, and the library must load beside the
// oldest libstdc++ that PyTorch itself runs with.
func TestExportedSymbols(t *testing.T) {
	needCompiler(t)
	f, err := elf.Open(shimLibrary(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	defined := map[string]bool{}
	for _, s := range symbols {
		defined[s.Name] = s.Section != elf.SHN_UNDEF
	}
	for _, name := range []string{
		"ashlar_malloc", "ashlar_free", "ashlar_torch_init", "ashlar_torch_reset", "ashlar_torch_set_memory_fraction", "ashlar_base_alloc",
		"ashlar_record_stream", "ashlar_begin_allocate_to_pool", "ashlar_end_allocate_to_pool", "ashlar_release_pool", "ashlar_set_witness",
	} {
		if !defined[name] {
			t.Errorf("%s is not exported", name)
		}
	}
	imported, err := f.ImportedSymbols()
	if err != nil {
		t.Fatal(err)
	}
	// Those of GCC 5 and before.
	old := []string{"", "GLIBCXX_3.4", "GLIBCXX_3.4.11", "GLIBCXX_3.4.14", "GLIBCXX_3.4.15", "GLIBCXX_3.4.20", "GLIBCXX_3.4.21", "CXXABI_1.3", "CXXABI_1.3.9"}
	for _, s := range imported {
		if strings.Contains(s.Library, "libstdc++") && !slices.Contains(old, s.Version) {
			t.Errorf("%s needs %s", s.Name, s.Version)
		}
	}
}
