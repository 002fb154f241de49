package variant

import (
	"strings"

	"github.com/ashlar-mem/ashlar/internal/hostmem/detect"
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
			keep, drop := splitTunables(value)
			if drop == "" {
				break
			}
			removed = append(removed, Variable{Name: name, Value: drop})
			if keep == "" {
				continue
			}
			assignment = name + "=" + keep
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

// splitTunables separates the tunables of malloc from the others.
func splitTunables(value string) (keep, drop string) {
	var kept, dropped []string
	for t := range strings.SplitSeq(value, ":") {
		if strings.HasPrefix(t, "glibc.malloc.") {
			dropped = append(dropped, t)
		} else {
			kept = append(kept, t)
		}
	}
	return strings.Join(kept, ":"), strings.Join(dropped, ":")
}

// splitPreload separates the mallocs among preloaded libraries from the others.
// The linker accepts colons and blanks between them.
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
