package variant

import (
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/hostmem/detect"
)

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
	for _, assignment := range base {
		name, value, _ := strings.Cut(assignment, "=")
		switch {
		case name == tunables:
			kept := withoutMalloc(value)
			if kept != value {
				removed = append(removed, Variable{Name: name, Value: value})
			}
			if kept == "" {
				continue
			}
			assignment = name + "=" + kept
		case name == preload:
			keep, drop := splitPreload(value)
			if drop != "" {
				removed = append(removed, Variable{Name: name, Value: drop})
			}
			loaded = append(loaded, keep...)
			continue
		case detect.Tunes(name, value) != "":
			removed = append(removed, Variable{Name: name, Value: value})
			continue
		}
		environ = append(environ, assignment)
	}
	for _, v := range r.Env {
		environ = append(environ, entry(v))
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
		vars = append(vars, Variable{Name: preload, Value: r.Preload})
	}
	return append(vars, r.Env...)
}
