package main

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/version"
)

// A target is a system that is built for.
type target struct {
	name       string // in names of archives
	os, arch   string
	static     bool   // cannot load NVIDIA's driver, and starts on every Linux
	cc, cxx    string // for libashlar.so; none: without it
	wheelTag   string // the platform, but for a glibc that is found out: GLIBC
	deb        string // Debian's word for the processor; none: no package
	machineTag string // the wheel's word for the processor
}

// Go 1.26 needs macOS 12. A static command runs with any libc: its wheel is for
// musl and for systems whose glibc is older than libashlar.so needs.
var targets = []target{
	{name: "linux-amd64", os: "linux", arch: "amd64", cc: "gcc", cxx: "g++", deb: "amd64", machineTag: "x86_64"},
	{name: "linux-arm64", os: "linux", arch: "arm64", cc: "aarch64-linux-gnu-gcc", cxx: "aarch64-linux-gnu-g++", deb: "arm64", machineTag: "aarch64"},
	{name: "linux-amd64-static", os: "linux", arch: "amd64", static: true, machineTag: "x86_64"},
	{name: "linux-arm64-static", os: "linux", arch: "arm64", static: true, machineTag: "aarch64"},
	{name: "darwin-amd64", os: "darwin", arch: "amd64", wheelTag: "macosx_12_0_x86_64"},
	{name: "darwin-arm64", os: "darwin", arch: "arm64", wheelTag: "macosx_12_0_arm64"},
	{name: "windows-amd64", os: "windows", arch: "amd64", wheelTag: "win_amd64"},
}

func (t target) isHost() bool { return t.os == runtime.GOOS && t.arch == runtime.GOARCH && !t.static }

// A build is what was compiled for a target.
type build struct {
	target
	command   []byte
	allocator []byte // libashlar.so, or nil
	tag       string // the platform of its wheel
	glibc     [2]int // the oldest that command and library start with
	parts     *parts
}

func (t target) build(work string) (*build, error) {
	b := &build{target: t, tag: t.wheelTag, glibc: [2]int{2, 17}}
	path := filepath.Join(work, t.name, t.file())
	flags := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", path}
	if t.static {
		flags = append(flags, "-tags", "static")
	}
	fmt.Println("building", t.name)
	if err := t.goTool([]string{"CGO_ENABLED=0"}, append(flags, "./cmd/ashlar")...); err != nil {
		return nil, err
	}
	var err error
	if b.command, err = os.ReadFile(path); err != nil {
		return nil, err
	}
	if b.parts, err = partsOf(path); err != nil {
		return nil, err
	}
	if err := b.addLibrary(filepath.Join(work, t.name, "libashlar.so")); err != nil {
		return nil, err
	}
	switch {
	case t.static:
		b.tag = "manylinux_2_17_" + t.machineTag + ".musllinux_1_1_" + t.machineTag
	case t.os == "linux":
		if err := b.need(path); err != nil {
			return nil, err
		}
		b.tag = fmt.Sprintf("manylinux_%d_%d_%s", b.glibc[0], b.glibc[1], t.machineTag)
	}
	return b, nil
}

// addLibrary builds libashlar.so where there is a compiler for it.
func (b *build) addLibrary(path string) error {
	if b.cc == "" {
		return nil
	}
	for _, tool := range []string{b.cc, b.cxx} {
		if _, err := exec.LookPath(tool); err != nil {
			fmt.Printf("%s: without libashlar.so, there is no %s\n", b.name, tool)
			return nil
		}
	}
	env := []string{"CGO_ENABLED=1", "CC=" + b.cc, "CXX=" + b.cxx}
	err := b.goTool(env, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-buildmode=c-shared", "-o", path, "./cmd/libashlar")
	if err != nil {
		return err
	}
	if b.allocator, err = os.ReadFile(path); err != nil {
		return err
	}
	return b.need(path)
}

// need raises glibc to the newest version that a symbol of the file asks for.
func (b *build) need(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if f.SectionByType(elf.SHT_GNU_VERNEED) == nil { // purego's symbols have no versions
		return nil
	}
	needs, err := f.DynamicVersionNeeds()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, n := range needs {
		for _, v := range n.Needs {
			if g, ok := glibc(v.Dep); ok && (g[0] > b.glibc[0] || g[0] == b.glibc[0] && g[1] > b.glibc[1]) {
				b.glibc = g
			}
		}
	}
	return nil
}

// glibc reads a version of a symbol, such as GLIBC_2.34.
func glibc(symbol string) (v [2]int, ok bool) {
	text, ok := strings.CutPrefix(symbol, "GLIBC_")
	if !ok {
		return v, false
	}
	words := strings.Split(text, ".")
	if len(words) < 2 {
		return v, false
	}
	for i := range v {
		n, err := strconv.Atoi(words[i])
		if err != nil {
			return v, false
		}
		v[i] = n
	}
	return v, true
}

func (t target) goTool(env []string, args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: go %s: %w", t.name, strings.Join(args, " "), err)
	}
	return nil
}

// file is the name of the command.
func (t target) file() string {
	if t.os == "windows" {
		return "ashlar.exe"
	}
	return "ashlar"
}

// The version in the words of Python (PEP 440) and of Debian, where a
// development version comes before its release.
func pythonVersion() string { return strings.Replace(version.Text, "-dev", ".dev0", 1) }
func debianVersion() string { return strings.Replace(version.Text, "-", "~", 1) }
