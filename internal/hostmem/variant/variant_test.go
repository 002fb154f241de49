package variant

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The variants that were asked for, the baseline first.
func TestTable(t *testing.T) {
	want := []string{"glibc", "glibc-arena2", "glibc-trim", "jemalloc", "jemalloc-bg", "tcmalloc", "tcmalloc-decommit", "mimalloc", "mimalloc-reset"}
	if diff := cmp.Diff(want, Names()); diff != "" {
		t.Error(diff)
	}
	for _, v := range All() {
		if v.Library != "" && libraryOf(v.Library) == nil {
			t.Errorf("%s: no library is called %s", v.Name, v.Library)
		}
		if (len(v.Env) > 0 || v.Trim) && v.Versions.Why == "" {
			t.Errorf("%s: nothing is said about versions", v.Name)
		}
	}
}

func TestChoose(t *testing.T) {
	for _, tt := range []struct{ list, want string }{
		{"", strings.Join(Names(), " ")},
		{"jemalloc-bg", "glibc jemalloc-bg"},
		{" mimalloc , jemalloc,mimalloc", "glibc mimalloc jemalloc"},
		{"glibc-trim,glibc", "glibc glibc-trim"},
	} {
		chosen, err := Choose(tt.list)
		var names []string
		for _, v := range chosen {
			names = append(names, v.Name)
		}
		if got := strings.Join(names, " "); err != nil || got != tt.want {
			t.Errorf("%q: %s, %v", tt.list, got, err)
		}
	}
	if _, err := Choose("jemalloc,tmalloc"); err == nil || !strings.Contains(err.Error(), `"tmalloc"`) || !strings.Contains(err.Error(), "tcmalloc-decommit") {
		t.Errorf("%v", err)
	}
}

func TestVersions(t *testing.T) {
	bg, decommit := table[4].Versions, table[6].Versions
	for _, tt := range []struct {
		v       Versions
		version string
		want    bool
	}{
		{bg, "5.3.0", true},
		{bg, "5.3.0-12", true},
		{bg, "5", true},
		{bg, "4.5.0", false},
		{bg, "", true},
		{bg, "10.0", true},
		{decommit, "2.10", true},
		{decommit, "2.8", false},
		{decommit, "2.8.0", false},
		{decommit, "2.8.1", true},
		{decommit, "2.1", false},
		{Versions{}, "0.1", true},
	} {
		if got := tt.v.Hold(tt.version); got != tt.want {
			t.Errorf("from %s without %v, %q: %v", tt.v.From, tt.v.Not, tt.version, got)
		}
	}
}

// Every variant is what it says, whatever stood in the environment before.
func TestEnviron(t *testing.T) {
	base := []string{
		"PATH=/bin", "MALLOC_ARENA_MAX=1", "MALLOC_CONF=narenas:1", "TCMALLOC_RELEASE_RATE=10", "MIMALLOC_VERBOSE=1",
		"GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.cpu.hwcaps=x",
		"LD_PRELOAD=/opt/libhook.so:/opt/libjemalloc.so.2 /opt/libtcmalloc.so.4", "PYTHONMALLOC=malloc",
	}
	for _, tt := range []struct {
		ready Ready
		want  []string
	}{
		{
			Ready{Variant: table[0]},
			[]string{"PATH=/bin", "GLIBC_TUNABLES=glibc.cpu.hwcaps=x", "PYTHONMALLOC=malloc", "LD_PRELOAD=/opt/libhook.so"},
		},
		{
			Ready{Variant: table[6], Preload: "/lib/libtcmalloc_minimal.so.4"},
			[]string{
				"PATH=/bin", "GLIBC_TUNABLES=glibc.cpu.hwcaps=x", "PYTHONMALLOC=malloc",
				"TCMALLOC_AGGRESSIVE_DECOMMIT=t", "LD_PRELOAD=/lib/libtcmalloc_minimal.so.4:/opt/libhook.so",
			},
		},
	} {
		got, removed := tt.ready.Environ(base)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.ready.Name, diff)
		}
		var names []string
		for _, v := range removed {
			names = append(names, entry(v))
		}
		want := []string{
			"MALLOC_ARENA_MAX=1", "MALLOC_CONF=narenas:1", "TCMALLOC_RELEASE_RATE=10", "MIMALLOC_VERBOSE=1",
			"GLIBC_TUNABLES=glibc.malloc.tcache_count=0", "LD_PRELOAD=/opt/libjemalloc.so.2:/opt/libtcmalloc.so.4",
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("removed: %s", diff)
		}
	}
	got, removed := (&Ready{Variant: table[0]}).Environ([]string{"A=b", "GLIBC_TUNABLES=glibc.malloc.arena_max=1"})
	if diff := cmp.Diff([]string{"A=b"}, got); diff != "" || len(removed) != 1 {
		t.Errorf("%s, %v", diff, removed)
	}
}

func TestLines(t *testing.T) {
	none := Lines{Shell: []string{}, Dockerfile: []string{}, Systemd: []string{}}
	if diff := cmp.Diff(none, (&Ready{Variant: table[0]}).Lines()); diff != "" {
		t.Error(diff)
	}
	bg := Ready{table[4], "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"}
	want := Lines{
		Shell: []string{
			"export LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
			"export MALLOC_CONF=background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0",
		},
		Dockerfile: []string{
			"RUN apt-get update && apt-get install -y --no-install-recommends libjemalloc2 && rm -rf /var/lib/apt/lists/*",
			"ENV LD_PRELOAD=libjemalloc.so.2",
			"ENV MALLOC_CONF=background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0",
		},
		Systemd: []string{
			"Environment=LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
			"Environment=MALLOC_CONF=background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0",
		},
	}
	if diff := cmp.Diff(want, bg.Lines()); diff != "" {
		t.Error(diff)
	}
	arena := Ready{Variant: table[1]}
	if got := arena.Lines().Dockerfile; !slices.Equal(got, []string{"ENV MALLOC_ARENA_MAX=2"}) {
		t.Errorf("%q", got)
	}
}

// The shell lines of glibc-trim build what they name.
func TestTrimLines(t *testing.T) {
	if Compiler() == "" {
		t.Skip("there is no C compiler")
	}
	ready, missing := Search(t.Context(), table[2:3], t.TempDir())
	if len(ready) != 1 {
		t.Fatalf("%+v", missing)
	}
	if !loadable(ready[0].Preload) {
		t.Errorf("%s is no library", ready[0].Preload)
	}
	lines := ready[0].Lines()
	home := filepath.Join(t.TempDir(), trimName)
	script := strings.ReplaceAll(strings.Join(lines.Shell, "\n"), trimHome, home)
	script = strings.Replace(script, "sudo cc", Compiler(), 1)
	out, err := exec.Command("/bin/sh", "-c", script+"\necho \"$LD_PRELOAD\"; exec /bin/true").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != home || !loadable(home) {
		t.Errorf("%s, %v", out, err)
	}
}

func TestCached(t *testing.T) {
	out := "3 libs found in cache `/etc/ld.so.cache'\n" +
		"\tlibz.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libz.so.1\n" +
		"\tlibtcmalloc_minimal_debug.so.4 (libc6,x86-64) => /lib/libtcmalloc_minimal_debug.so.4\n" +
		"\tlibjemalloc.so.2 (libc6,x86-64) => /lib/x86_64-linux-gnu/libjemalloc.so.2\n"
	want := []string{"/lib/libtcmalloc_minimal_debug.so.4", "/lib/x86_64-linux-gnu/libjemalloc.so.2"}
	if diff := cmp.Diff(want, cached([]byte(out))); diff != "" {
		t.Error(diff)
	}
}

// The library is found by its name, of this machine, with a version if it can be.
func TestFind(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if Compiler() == "" {
		t.Skip("there is no C compiler to make a library")
	}
	dir := t.TempDir()
	real, err := Build(t.Context(), dir, "real.so", "int x;", "-shared", "-fPIC")
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, from string) string {
		file := filepath.Join(dir, name)
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(file, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	script := filepath.Join(dir, "libjemalloc.so.1")
	if err := os.WriteFile(script, []byte("INPUT(-lc)"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := []string{
		script, put("libjemalloc.so", real), put("libjemalloc.so.2", real),
		put("libtcmalloc_minimal_debug.so.4", real), put("libtcmalloc.so.4", real), put("libtcmalloc_minimal.so.4", real),
		put("libmimalloc.so.2", self), // a program
	}
	for _, tt := range []struct{ object, want string }{
		{"jemalloc", "libjemalloc.so.2"}, {"tcmalloc", "libtcmalloc_minimal.so.4"}, {"mimalloc", "."},
	} {
		if got := filepath.Base(libraryOf(tt.object).find(files)); got != tt.want {
			t.Errorf("%s: %s", tt.object, got)
		}
	}
}

func TestConfiguredDirs(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.conf"), []byte("/opt/a/lib\n# /opt/no\n/opt/b/lib # yes\nrelative\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := configuredDirs(strings.NewReader("include *.conf\ninclude /absent/*.conf\n\n/opt/c\n"), dir, 0)
	if diff := cmp.Diff([]string{"/opt/a/lib", "/opt/b/lib", "/opt/c"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestFamily(t *testing.T) {
	for _, tt := range []struct{ release, want string }{
		{"ID=debian\n", "apt-get install libjemalloc2"},
		{"NAME=\"Ubuntu\"\nID_LIKE=debian\nID=ubuntu\n", "apt-get install libjemalloc2"},
		{"ID=\"rhel\"\nID_LIKE=\"centos fedora\"\n", "dnf install jemalloc"},
		{"ID=alpine\n", ""},
		{"", ""},
	} {
		f := family(tt.release)
		if got := installCommand(f, libraries[0].packages[f]); got != tt.want {
			t.Errorf("%q: %q", tt.release, got)
		}
	}
}

func TestMissing(t *testing.T) {
	t.Setenv("PATH", "")
	t.Setenv("CC", "")
	_, missing := Search(t.Context(), table[2:3], t.TempDir())
	if len(missing) != 1 || missing[0].Variant != "glibc-trim" || missing[0].Needs != "a C compiler" {
		t.Errorf("%+v", missing)
	}
}
