package variant

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// library says how to find and install the shared library of an allocator.
type library struct {
	name string
	// stems of file names before ".so", the best first. tcmalloc's minimal one
	// is the malloc without the profilers.
	stems []string
	// packages of the families of distributions, by ID of os-release.
	packages map[string]string
}

var libraries = []library{
	{"jemalloc", []string{"libjemalloc"}, map[string]string{"debian": "libjemalloc2", "fedora": "jemalloc"}},
	{"tcmalloc", []string{"libtcmalloc_minimal", "libtcmalloc"}, map[string]string{"debian": "libtcmalloc-minimal4", "fedora": "gperftools-libs"}},
	{"mimalloc", []string{"libmimalloc"}, map[string]string{"debian": "libmimalloc2.0", "fedora": "mimalloc"}},
}

func libraryOf(name string) *library {
	i := slices.IndexFunc(libraries, func(l library) bool { return l.name == name })
	if i < 0 {
		return nil
	}
	return &libraries[i]
}

// isMalloc reports whether a file name is that of a library with a malloc that
// this package knows.
func isMalloc(file string) bool {
	base := filepath.Base(file)
	return slices.ContainsFunc(libraries, func(l library) bool {
		return slices.ContainsFunc(l.stems, func(stem string) bool { return strings.HasPrefix(base, stem) })
	})
}

// find looks for the library among files; empty if it is not there.
func (l *library) find(files []string) string {
	for _, stem := range l.stems {
		var best string
		for _, f := range files {
			rest, ok := strings.CutPrefix(filepath.Base(f), stem+".so")
			if !ok || (rest != "" && rest[0] != '.') || !loadable(f) {
				continue
			}
			// The name with a major version is that of the package; the one
			// without is for linking and may be a script.
			if best == "" || strings.Count(filepath.Base(best), ".") < 2 {
				best = f
			}
		}
		if best != "" {
			return best
		}
	}
	return ""
}

// loadable reports whether a file is a shared library for this machine.
func loadable(file string) bool {
	f, err := elf.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	return f.Type == elf.ET_DYN && f.Machine == machine()
}

func machine() elf.Machine {
	switch runtime.GOARCH {
	case "amd64":
		return elf.EM_X86_64
	case "arm64":
		return elf.EM_AARCH64
	case "386":
		return elf.EM_386
	case "ppc64le":
		return elf.EM_PPC64
	case "s390x":
		return elf.EM_S390
	case "riscv64":
		return elf.EM_RISCV
	}
	return elf.EM_NONE
}

// installed lists the shared libraries that the dynamic linker finds by
// itself: those of its cache, then those in its directories.
func installed(ctx context.Context) []string {
	var files []string
	for _, ldconfig := range []string{"ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"} {
		out, err := exec.CommandContext(ctx, ldconfig, "-p").Output()
		if err == nil {
			files = cached(out)
			break
		}
	}
	for _, dir := range directories() {
		for _, l := range libraries {
			for _, stem := range l.stems {
				found, _ := filepath.Glob(filepath.Join(dir, stem+".so*")) // the pattern is sound
				files = append(files, found...)
			}
		}
	}
	return files
}

// cached reads what ldconfig -p prints: "	libc.so.6 (libc6,x86-64) => /lib/...".
func cached(out []byte) []string {
	var files []string
	for line := range bytes.Lines(out) {
		if _, file, ok := strings.Cut(strings.TrimSpace(string(line)), " => "); ok && isMalloc(file) {
			files = append(files, file)
		}
	}
	return files
}

// directories lists where the dynamic linker looks: LD_LIBRARY_PATH, what
// ld.so.conf names, and the directories it has built in.
func directories() []string {
	var dirs []string
	for dir := range strings.SplitSeq(os.Getenv("LD_LIBRARY_PATH"), ":") {
		if dir != "" {
			dirs = append(dirs, dir)
		}
	}
	dirs = append(dirs, configured("/etc/ld.so.conf", 0)...)
	dirs = append(dirs, "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib")
	multiarch, _ := filepath.Glob("/usr/lib/*-linux-gnu*") // the pattern is sound
	return append(dirs, multiarch...)
}

// configured reads a file of directories, one a line, with includes.
func configured(file string, depth int) []string {
	f, err := os.Open(file)
	if err != nil || depth > 4 {
		return nil
	}
	defer f.Close()
	return configuredDirs(f, filepath.Dir(file), depth)
}

func configuredDirs(r io.Reader, base string, depth int) []string {
	var dirs []string
	for lines := bufio.NewScanner(r); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(line)
		switch {
		case len(words) == 2 && words[0] == "include":
			pattern := words[1]
			if !filepath.IsAbs(pattern) {
				pattern = filepath.Join(base, pattern)
			}
			files, _ := filepath.Glob(pattern) // a bad pattern names no file
			for _, f := range files {
				dirs = append(dirs, configured(f, depth+1)...)
			}
		case len(words) == 1 && filepath.IsAbs(words[0]):
			dirs = append(dirs, words[0])
		}
	}
	return dirs
}

// family is the kind of distribution: the first of ID and ID_LIKE that
// libraries have packages for.
func family(release string) string {
	var ids []string
	for line := range strings.Lines(release) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok {
			continue
		}
		words := strings.Fields(strings.Trim(value, `"'`))
		switch key {
		case "ID":
			ids = append(words, ids...)
		case "ID_LIKE":
			ids = append(ids, words...)
		}
	}
	for _, id := range ids {
		if _, ok := libraries[0].packages[id]; ok {
			return id
		}
	}
	return ""
}

// installCommand is what installs packages on a family of distributions; empty
// if that is not known.
func installCommand(family, packages string) string {
	switch family {
	case "debian":
		return "apt-get install " + packages
	case "fedora":
		return "dnf install " + packages
	}
	return ""
}

func osRelease() string {
	for _, file := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		if data, err := os.ReadFile(file); err == nil {
			return string(data)
		}
	}
	return ""
}
