package detect

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"
)

// allocator is one row of the table of allocators: how to recognise it.
type allocator struct {
	name string
	// exports are functions of its own interface. Names that several allocators
	// have, such as __libc_malloc, prove nothing and are not here.
	exports []string
	// prefixed are such functions where it was built to live beside another
	// malloc: a program with these calls it by name.
	prefixed []string
	// internals are symbols that only its own code has; a program that is not
	// stripped shows them.
	internals []string
	// texts are in its code, even if all symbols were stripped.
	texts   []string
	version func(*object) string
}

// The table, in the order of the tests. The C libraries come last: their texts
// are in static programs that use another malloc too.
var allocators = []allocator{
	{
		name:     Jemalloc,
		exports:  []string{"mallctl", "mallctlnametomib"},
		prefixed: []string{"je_mallctl", "_rjem_mallctl", "je_arrow_mallctl"},
		texts:    []string{"<jemalloc>: "},
		version:  jemallocVersion,
	},
	{
		name:    Tcmalloc,
		exports: []string{"tc_version", "MallocExtension_GetNumericProperty", "TCMallocInternalMalloc"},
		texts:   []string{"TCMALLOC_AGGRESSIVE_DECOMMIT", "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES", "tcmalloc: large alloc"},
		version: tcmallocVersion,
	},
	{
		name:    Mimalloc,
		exports: []string{"mi_version", "mi_malloc"},
		texts:   []string{"mimalloc: error: ", "mimalloc: warning: "},
		version: mimallocVersion,
	},
	{name: "asan", exports: []string{"__asan_init"}, texts: []string{"AddressSanitizer: "}},
	{name: "tbbmalloc", exports: []string{"__TBB_malloc_proxy"}},
	{name: "rpmalloc", exports: []string{"rpmalloc_initialize"}},
	{
		name:      Glibc,
		exports:   []string{"gnu_get_libc_version"},
		internals: []string{"_int_malloc"},
		texts:     []string{"corrupted double-linked list"},
		version:   glibcVersion,
	},
	{
		name:      Musl,
		exports:   []string{"__dls3"}, // a stage of its loader, which is one with the library
		internals: []string{"__libc_malloc_impl", "__malloc_alloc_meta"},
		texts:     []string{"musl libc"},
		version:   muslVersion,
	},
}

func rowOf(name string) *allocator {
	for i := range allocators {
		if allocators[i].name == name {
			return &allocators[i]
		}
	}
	return nil
}

// isLibC reports whether it is the malloc that comes with the C library.
func isLibC(name string) bool { return name == Glibc || name == Musl }

// versionOf returns the version of an allocator in an object, nil if unknown.
func versionOf(name string, o *object) *string {
	row := rowOf(name)
	if row == nil || row.version == nil {
		return nil
	}
	if v := row.version(o); v != "" {
		return &v
	}
	return nil
}

// jemalloc has its version with the commit: "5.3.0-0-g54eaed1d...". A build
// outside its repository does not know it and writes zeros.
var jemallocRelease = regexp.MustCompile(`(\d+\.\d+\.\d+)-(\d+)$`)

func jemallocVersion(o *object) string {
	version := ""
	o.around("-g", 64, func(w window) bool {
		m := jemallocRelease.FindSubmatch(w.before)
		if m == nil || !hexCommit.Match(w.after) {
			return false
		}
		version = string(m[1])
		if string(m[2]) != "0" {
			version += "-" + string(m[2])
		}
		if strings.HasPrefix(version, "0.0.0") {
			version = ""
		}
		return true
	})
	return version
}

var hexCommit = regexp.MustCompile(`^-g[0-9a-f]{40}\x00`)

// tc_version returns "gperftools 2.10".
var gperftoolsVersion = regexp.MustCompile(`^gperftools (\d+\.\d+[0-9A-Za-z.]*)\x00`)

func tcmallocVersion(o *object) string { return textVersion(o, "gperftools ", gperftoolsVersion) }

// The banner that running libc.so.6 prints.
var glibcBanner = regexp.MustCompile(`^GNU C Library [^\x00\n]*?release version (\d+\.\d+[.0-9]*\d)`)

// glibcVersion is empty for a static program: it has no banner.
func glibcVersion(o *object) string { return textVersion(o, "GNU C Library ", glibcBanner) }

var muslRelease = regexp.MustCompile(`\x00(\d+\.\d+\.\d+)\x00`)

func muslVersion(o *object) string {
	version := ""
	o.around("1.", 8, func(w window) bool {
		if m := muslRelease.FindSubmatch(append(w.before[max(0, len(w.before)-1):len(w.before):len(w.before)], w.after...)); m != nil {
			version = string(m[1])
		}
		return version != ""
	})
	return version
}

func textVersion(o *object, text string, pattern *regexp.Regexp) string {
	version := ""
	o.around(text, 256, func(w window) bool {
		if m := pattern.FindSubmatch(w.after); m != nil {
			version = string(m[1])
		}
		return version != ""
	})
	return version
}

// mi_version only returns a number: its code holds it.
func mimallocVersion(o *object) string {
	if at, ok := o.defined("mi_version"); ok {
		var code [16]byte
		if readFull(o.space, code[:], at) == nil {
			if n, ok := returnedConstant(o.machine, code); ok {
				return mimallocRelease(n)
			}
		}
	}
	if _, v, ok := strings.Cut(o.soname, ".so."); ok && strings.Contains(v, ".") {
		return v
	}
	return ""
}

// mimallocRelease writes 209 as 2.0.9 and, as of later versions, 30204 as 3.2.4.
func mimallocRelease(n uint32) string {
	switch {
	case n >= 100 && n < 1000:
		return fmt.Sprintf("%d.%d.%d", n/100, n/10%10, n%10)
	case n >= 10000 && n < 1000000:
		return fmt.Sprintf("%d.%d.%d", n/10000, n/100%100, n%100)
	}
	return ""
}

// returnedConstant reads the number of a function that only returns one.
func returnedConstant(machine elf.Machine, code [16]byte) (uint32, bool) {
	c := code[:]
	switch machine {
	case elf.EM_X86_64:
		if [4]byte(c[:4]) == [4]byte{0xf3, 0x0f, 0x1e, 0xfa} { // endbr64
			c = c[4:]
		}
		if c[0] == 0xb8 && c[5] == 0xc3 { // mov eax, imm32; ret
			return binary.LittleEndian.Uint32(c[1:]), true
		}
	case elf.EM_AARCH64:
		word := binary.LittleEndian.Uint32(c)
		if word == 0xd503245f { // bti c
			c = c[4:]
			word = binary.LittleEndian.Uint32(c)
		}
		if word&0xffe0001f == 0x52800000 && binary.LittleEndian.Uint32(c[4:]) == 0xd65f03c0 { // mov w0, imm16; ret
			return word >> 5 & 0xffff, true
		}
	}
	return 0, false
}
