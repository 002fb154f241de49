//go:build linux

package detect

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// said runs a program that ends at once and returns what it and the allocator
// have printed.
func said(t *testing.T, env []string, argv ...string) string {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v %q: %v\n%s", env, argv, err, text)
	}
	return string(text)
}

// The library itself judges the values, and is compared with our rules.
func TestJemallocValues(t *testing.T) {
	lib, program := jemalloc(t), compile(t, "hold")
	f, err := os.Open(lib)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	version := jemallocVersion(&object{file: f})
	for _, conf := range []string{
		"background_thread:yes", "background_thread:false", "background_thread:True", "background_thread:", "dirty_decay_ms:abc",
		"dirty_decay_ms:1000", "dirty_decay_ms:-1", "dirty_decay_ms:-2", "dirty_decay_ms:", "dirty_decay_ms:10s", "dirty_decay_ms:0x10",
		"dirty_decay_ms:99999999999999999999", "dirty_decay_ms: 5", "dirty_decay_ms:08", "muzzy_decay_ms:1e3", "narenas:0", "narenas:2", "narenas:default",
		"narenas:two", "narenas:1k", "retain:1", "zero:1", "tcache:false", "tcache_max:abc", "tcache_max:4096", "lg_tcache_max:99",
		"percpu_arena:percpu", "percpu_arena:on", "metadata_thp:auto", "metadata_thp:true", "thp:always", "thp:al", "thp:true", "dss:primary", "dss:foo",
		"junk:alloc", "junk:on", "stats_interval:-1", "stats_interval:x", "oversize_threshold:1M", "narenas:1,retain:true",
		"narenas:1,retain;true,zero:true", "narenas:1,,zero:true", " narenas:1", "narenas", "narenas:1,zero", "narenas:1, zero:true",
	} {
		refused := ""
		options, rest := confOptions(conf)
		for _, o := range options {
			refused += o.refused(&version)
		}
		text := said(t, []string{"LD_PRELOAD=" + lib, "MALLOC_CONF=" + conf}, program)
		if own := strings.Contains(text, "<jemalloc>: "); own != (refused != "" || rest != "") {
			t.Errorf("%s: we say %q, rest %q; jemalloc says %q", conf, refused, rest, text)
		}
	}
}

func TestMimallocValues(t *testing.T) {
	lib, program := mimalloc(t), compile(t, "hold")
	for _, v := range []string{
		"reset_delay=abc", "reset_delay=10", "reset_delay=-10", "reset_delay= 10", "reset_delay=10ms", "reset_delay=", "reset_delay=-", "page_reset=yes",
		"page_reset=on", "page_reset=ja", "page_reset=2", "reserve_os_memory=1M", "reserve_os_memory=1MiB", "reserve_os_memory=1Mb",
		"reserve_os_memory=1Q", "reserve_os_memory=M1", "eager_commit_delay=1K",
	} {
		option, value, _ := strings.Cut(v, "=")
		text := said(t, []string{"LD_PRELOAD=" + lib, "MIMALLOC_SHOW_ERRORS=1", "MIMALLOC_" + strings.ToUpper(option) + "=" + value}, program)
		if own := !strings.Contains(text, "has an invalid value"); own != mimallocTakes(option, value) {
			t.Errorf("%s: mimalloc says %q", v, text)
		}
	}
}

// The loader reports what it has made of variables.
func TestGlibcValues(t *testing.T) {
	loader, err := filepath.Glob("/lib64/ld-linux-*.so.*")
	if err != nil || len(loader) == 0 {
		t.Skip("the loader is elsewhere")
	}
	f, err := os.Open(loader[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g := glibcVariables{readers: []*object{{file: f}}}
	for _, test := range []struct{ name, value string }{
		{"arena_max", "foo"},
		{"arena_max", "2"},
		{"arena_max", "0"},
		{"arena_max", "2x"},
		{"arena_max", "010"},
		{"arena_max", "-1"},
		{"arena_max", ""},
		{"arena_max", " 5"},
		{"arena_test", "0"},
		{"trim_threshold", "1M"},
		{"trim_threshold", "0x20"},
		{"mmap_threshold", "4096KiB"},
		{"top_pad", "12"},
		{"perturb", "255"},
		{"perturb", "256"},
		{"perturb", "-1"},
		{"perturb", "x"},
		{"mmap_max", "7,8"},
	} {
		pattern := regexp.MustCompile(`glibc\.malloc\.` + test.name + `: (\S+) `)
		get := func(env ...string) string {
			m := pattern.FindStringSubmatch(said(t, env, loader[0], "--list-tunables"))
			if m == nil {
				t.Fatalf("the loader does not have %s", test.name)
			}
			return m[1]
		}
		unset, set := get(), get("GLIBC_TUNABLES=glibc.malloc."+test.name+"="+test.value)
		got := g.refused(test.name, test.value)
		n := leadingNumber(test.value, 0)
		value := fmt.Sprintf("0x%x", n.value)
		if n.negative {
			value = fmt.Sprintf("0x%x", -n.value)
		}
		if test.name == "perturb" || test.name == "mmap_max" {
			value = fmt.Sprint(n.value)
		}
		want := "" // taken as it is written
		switch {
		case set == unset && n.value == 0 && !g.says("invalid GLIBC_TUNABLES value") && test.name != "arena_max" && test.name != "arena_test":
			want = "reads" // 0 is what it is without
		case set == unset:
			want = "takes"
		case set != value:
			t.Errorf("%v: the loader has %s, we read %s", test, set, value)
		case n.rest != "":
			want = "reads"
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%v: %q, but the loader has %s, and %s without it", test, got, set, unset)
		}
	}
}

// Newer versions of glibc refuse a list that they cannot read as a whole, and
// values that are no numbers. Their messages show that they do.
func TestStrictGlibc(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ld.so")
	names := "\x00glibc.malloc.arena_max\x00glibc.malloc.trim_threshold\x00"
	const strict = "WARNING: ld.so: invalid GLIBC_TUNABLES `%s': ignored.\x00WARNING: ld.so: invalid GLIBC_TUNABLES value `%.*s' for option `%s': ignored.\x00"
	for _, test := range []struct{ value, lax, strict string }{
		{"glibc.malloc.arena_max=2:glibc.malloc.trim_threshold=4096", "", ""},
		{
			"glibc.malloc.arena_max=x:glibc.malloc.trim_threshold=1M",
			`glibc.malloc.arena_max: "x" is no number: glibc reads it as 0, and takes 1 or more; glibc.malloc.trim_threshold: "M" is dropped: glibc reads "1M" as 1`,
			`glibc.malloc.arena_max: glibc takes a whole number, not "x"; glibc.malloc.trim_threshold: glibc takes a whole number, not "1M"`,
		},
		{"glibc.malloc.arena_max=0", "glibc.malloc.arena_max: glibc takes 1 or more, not 0", "glibc.malloc.arena_max: glibc takes 1 or more, not 0"},
		{"glibc.malloc.arena_max=2:glibc.malloc.trim_threshold", "glibc.malloc.trim_threshold has no value", `glibc cannot read it because of "glibc.malloc.trim_threshold", and ignores all of it`},
		{"glibc.malloc.arena_max=2=3", `glibc.malloc.arena_max: "=3" is dropped: glibc reads "2=3" as 2`, `glibc cannot read it because of "glibc.malloc.arena_max=2=3", and ignores all of it`},
		{"glibc.malloc.arena_max:glibc.malloc.trim_threshold=1", "glibc.malloc.arena_max has no value", "glibc.malloc.arena_max has no value"},
		{"glibc.cpu.x=1:glibc.malloc.no=1", "this glibc does not have glibc.malloc.no", "this glibc does not have glibc.malloc.no"},
	} {
		for content, want := range map[string]string{names: test.lax, names + strict: test.strict} {
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			g := glibcVariables{readers: []*object{{file: f}}}
			if got := strings.Join(g.tunables(test.value), "; "); got != want {
				t.Errorf("%s:\n got %s\nwant %s", test.value, got, want)
			}
			f.Close()
		}
	}
}
