//go:build linux

package detect

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVariables(t *testing.T) {
	program := compile(t, "hold")
	for _, test := range []struct {
		name, object string
		env          []string
		ignored      map[string]string // last reason by name
	}{
		{
			"glibc", "",
			[]string{
				"MALLOC_ARENA_MAX=2", "MALLOC_TRIM_THRESHOLD_=1000", "MALLOC_TRIM_THRESHOLD=1000", "MALLOC_NONSENSE=1", "MALLOC_CHECK_=3",
				"GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.nonsense=1:glibc.malloc.arena_test=3",
				"MALLOC_CONF=narenas:1", "TCMALLOC_RELEASE_RATE=10", "MIMALLOC_RESET_DELAY=0", "PYTHONMALLOC=malloc",
				"LD_PRELOAD=/nowhere/libjemalloc.so.2",
				"HOME=/home/me",
			},
			map[string]string{
				"MALLOC_TRIM_THRESHOLD": "glibc's name is MALLOC_TRIM_THRESHOLD_",
				"MALLOC_NONSENSE":       "this glibc does not have the name",
				"MALLOC_CHECK_":         "it only has an effect with libc_malloc_debug.so.0 preloaded",
				"GLIBC_TUNABLES":        "this glibc does not have glibc.malloc.nonsense",
				"MALLOC_CONF":           "it is for jemalloc; malloc here is that of glibc",
				"TCMALLOC_RELEASE_RATE": "it is for tcmalloc; malloc here is that of glibc",
				"MIMALLOC_RESET_DELAY":  "it is for mimalloc; malloc here is that of glibc",
				"PYTHONMALLOC":          "the program is not Python",
				"LD_PRELOAD":            "/nowhere/libjemalloc.so.2 is not loaded",
			},
		},
		{
			"values of glibc", "",
			[]string{"MALLOC_ARENA_MAX=foo", "MALLOC_PERTURB_=300", "MALLOC_TOP_PAD_=4096", "GLIBC_TUNABLES=glibc.malloc.arena_test=x:glibc.malloc.mxfast=8"},
			map[string]string{
				"MALLOC_ARENA_MAX": `"foo" is no number: glibc reads it as 0, and takes 1 or more`,
				"MALLOC_PERTURB_":  "glibc takes 0 to 255, not 300",
				"GLIBC_TUNABLES":   `glibc.malloc.arena_test: "x" is no number: glibc reads it as 0, and takes 1 or more`,
			},
		},
		{
			"values of jemalloc", jemalloc(t),
			[]string{"MALLOC_CONF=background_thread:yes"},
			map[string]string{"MALLOC_CONF": `jemalloc does not take "yes" for background_thread: it takes true or false`},
		},
		{
			"malformed list of jemalloc", jemalloc(t),
			[]string{"MALLOC_CONF=narenas:1,dirty_decay_ms;5,background_thread:true"},
			map[string]string{"MALLOC_CONF": `jemalloc cannot read it from "dirty_decay_ms;5,background_thread:true" on, and drops that`},
		},
		{
			"values of tcmalloc", tcmalloc(t),
			[]string{
				"TCMALLOC_AGGRESSIVE_DECOMMIT=on", "TCMALLOC_SKIP_SBRK=off", "TCMALLOC_SKIP_MMAP=", "TCMALLOC_RELEASE_RATE=fast",
				"TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=64MB", "TCMALLOC_HEAP_LIMIT_MB=512",
			},
			map[string]string{
				"TCMALLOC_AGGRESSIVE_DECOMMIT":          `tcmalloc reads "on" as false: what begins with t, y or 1 is true`,
				"TCMALLOC_RELEASE_RATE":                 `"fast" is no number: tcmalloc reads it as 0`,
				"TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES": `"MB" is dropped: tcmalloc reads "64MB" as 64`,
			},
		},
		{
			"values of mimalloc", mimalloc(t),
			[]string{"MIMALLOC_SHOW_STATS=maybe", "MIMALLOC_MAX_ERRORS=3"},
			map[string]string{"MIMALLOC_SHOW_STATS": `mimalloc does not take "maybe": it takes a whole number, or a word such as on or off`},
		},
		{
			"jemalloc", jemalloc(t),
			[]string{"MALLOC_CONF=background_thread:true,dirty_decay_ms:1000,no_such:1", "JE_MALLOC_CONF=narenas:1", "MALLOC_ARENA_MAX=2"},
			map[string]string{
				"MALLOC_CONF":      "this jemalloc does not have the option no_such",
				"JE_MALLOC_CONF":   "this jemalloc reads MALLOC_CONF",
				"MALLOC_ARENA_MAX": "it is for glibc; malloc here is that of jemalloc",
			},
		},
		{
			"tcmalloc", tcmalloc(t),
			[]string{"TCMALLOC_RELEASE_RATE=10", "TCMALLOC_AGGRESSIVE_DECOMMIT=1", "TCMALLOC_AGGRESSIVE=1"},
			map[string]string{"TCMALLOC_AGGRESSIVE": "this tcmalloc does not have the name"},
		},
		{
			"mimalloc", mimalloc(t),
			[]string{"MIMALLOC_SHOW_ERRORS=0", "mimalloc_max_errors=1", "MIMALLOC_NO_SUCH=1"},
			map[string]string{"MIMALLOC_NO_SUCH": "this mimalloc does not have the option"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			env := append(preload(test.object), test.env...)
			r, err := inspect(running(t, env, program), true)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, i := range r.IgnoredEnv {
				// A newer glibc refuses what an older one reads somehow.
				why := regexp.MustCompile(`glibc takes a whole number, not ("\w+")$`).ReplaceAllString(i.Why, "$1 is no number: glibc reads it as 0, and takes 1 or more")
				got[i.Name] = why
			}
			if d := cmp.Diff(test.ignored, got); d != "" {
				t.Error(d)
			}
			want := len(env)
			for _, v := range env {
				if v == "HOME=/home/me" {
					want-- // it is not about allocators
				}
			}
			if len(r.Env) != want {
				t.Errorf("%d variables, want %d: %+v", len(r.Env), want, r.Env)
			}
		})
	}
}

// A linker keeps a text that is the end of another only once.
func TestMimallocOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "object")
	if err := os.WriteFile(file, []byte("\x00deprecated_segment_reset\x00abandoned_page_reset\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, want := range map[string]bool{
		"MIMALLOC_PAGE_RESET": true, "mimalloc_abandoned_page_reset": true, "MIMALLOC_SEGMENT_RESET": false, "MIMALLOC_PAGE": false,
	} {
		if got := mimallocKnows(&object{file: f}, name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestOldGlibc(t *testing.T) {
	for _, test := range []struct {
		version string
		before  bool
	}{{"2.17", true}, {"2.26", false}, {"2.36", false}, {"1.99", true}, {"3.0", false}, {"x", false}} {
		if got := olderThan(&test.version, 2, 26); got != test.before {
			t.Errorf("%s: %v", test.version, got)
		}
	}
	if olderThan(nil, 2, 26) {
		t.Error("no version")
	}
}
