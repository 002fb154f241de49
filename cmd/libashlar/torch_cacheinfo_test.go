package main

import (
	"cmp"
	"path/filepath"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// PyTorch's table of virtual functions is changed where everything is as
// expected, and not touched otherwise.
func TestCacheInfoOfTorch(t *testing.T) {
	short.Skip(t)
	needCompiler(t)
	library := shimLibrary(t)
	program := filepath.Join(t.TempDir(), "cacheinfo")
	compileStandin(t, program, "-rdynamic", "testdata/standin/cacheinfo.cpp", "-ldl")
	for _, c := range []struct {
		name  string
		file  string // of PyTorch's library
		flags []string
		env   string
		bits  string // of the page of the table
		why   string // it is not served
	}{
		{name: "read-only", bits: "r--p"},
		{name: "renamed", file: "libtorch_cuda-1a2b3c4d.so", bits: "r--p"},
		{name: "writable", flags: []string{"-Wl,-z,norelro"}, bits: "rw-p"},
		{name: "hidden table", flags: []string{"-DSTANDIN_HIDDEN_TABLE"}, bits: "r--p", why: "does not export the vtable"},
		{name: "hidden method", flags: []string{"-DSTANDIN_HIDDEN_METHOD"}, bits: "r--p", why: "does not export CUDAPluggableAllocator::cacheInfo"},
		{name: "no entry", flags: []string{"-DSTANDIN_NO_ENTRY"}, bits: "r--p", why: "exactly once"},
		{name: "two entries", flags: []string{"-DSTANDIN_TWO_ENTRIES"}, bits: "r--p", why: "exactly once"},
		{name: "refused", bits: "r--p", why: "mprotect"},
		{name: "forbidden", env: "0", bits: "r--p", why: "ASHLAR_PATCH_TORCH=0"},
		{name: "allowed", env: "1", bits: "r--p"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("ASHLAR_PATCH_TORCH", c.env)
			torch := filepath.Join(t.TempDir(), cmp.Or(c.file, "libtorch_cuda.so"))
			flags := append([]string{"-shared", "-fPIC", "-Wl,-z,relro,-z,now", "testdata/standin/torch_cuda.cpp"}, c.flags...)
			compileStandin(t, torch, flags...)
			if bits := runStandin(t, program, library, torch, c.why); bits != c.bits {
				t.Errorf("the table lay in a page with %s, so that this tests something else", bits)
			}
		})
	}
}
