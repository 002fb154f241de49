package variant

import (
	"slices"
	"strings"
)

// tuning are the beginnings of variables that mallocs read.
var tuning = []string{
	"MALLOC_ARENA_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_MMAP_", "MALLOC_TCACHE_", "MALLOC_PERTURB_", "MALLOC_CHECK_",
	"MALLOC_CONF", "_RJEM_MALLOC_CONF", "JE_MALLOC_CONF", "TCMALLOC_", "MIMALLOC_",
}

const (
	preload  = "LD_PRELOAD"
	tunables = "GLIBC_TUNABLES"
)

// Environ is an environment to run the variant in. What an earlier choice of a
// malloc has left in base is taken out, and listed: every variant has to be
// what it says. Other libraries stay preloaded.
func (r *Ready) Environ(base []string) (environ []string, removed []Variable) {
	loaded := []string{}
	if r.Preload != "" {
		loaded = append(loaded, r.Preload)
	}
	for _, entry := range base {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case slices.ContainsFunc(tuning, func(t string) bool { return strings.HasPrefix(name, t) }):
			removed = append(removed, Variable{name, value})
			continue
		case name == tunables:
			kept := withoutMalloc(value)
			if kept != value {
				removed = append(removed, Variable{name, value})
			}
			if kept == "" {
				continue
			}
			entry = name + "=" + kept
		case name == preload:
			keep, drop := splitPreload(value)
			if drop != "" {
				removed = append(removed, Variable{name, drop})
			}
			loaded = append(loaded, keep...)
			continue
		}
		environ = append(environ, entry)
	}
	for _, v := range r.Env {
		environ = append(environ, v.String())
	}
	if len(loaded) > 0 {
		environ = append(environ, preload+"="+strings.Join(loaded, ":"))
	}
	return environ, removed
}

// withoutMalloc leaves the tunables that are not about malloc.
func withoutMalloc(value string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(value, ":"), func(t string) bool {
		return strings.HasPrefix(t, "glibc.malloc.")
	}), ":")
}

// splitPreload tells the mallocs among preloaded libraries from the others. The
// linker takes colons and blanks between them.
func splitPreload(value string) (keep []string, drop string) {
	var mallocs []string
	for _, file := range strings.FieldsFunc(value, func(r rune) bool { return r == ':' || r == ' ' }) {
		if isMalloc(file) {
			mallocs = append(mallocs, file)
		} else {
			keep = append(keep, file)
		}
	}
	return keep, strings.Join(mallocs, ":")
}

// Variables are those that the variant sets, LD_PRELOAD first.
func (r *Ready) Variables() []Variable {
	vars := []Variable{}
	if r.Preload != "" {
		vars = append(vars, Variable{preload, r.Preload})
	}
	return append(vars, r.Env...)
}
