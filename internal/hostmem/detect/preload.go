package detect

import (
	"fmt"
	"slices"
)

// ignoredPreloads explains each object of LD_PRELOAD that is not loaded or
// whose malloc is not the one in use.
func (t *target) ignoredPreloads(value string, f Finding, used *object) []string {
	names := preloadNames(value)
	if t.program != nil && t.static() {
		if len(names) == 0 {
			return nil
		}
		return []string{"the program is static: no loader reads it"}
	}
	next := t.behind(used)
	var why []string
	for _, name := range names {
		o := t.named(name)
		switch {
		case o == nil && t.mayBeUnnamed(): // it may be one of those
		case o == nil:
			why = append(why, name+" is not loaded")
		case o == used, o == next, !o.exports("malloc"):
		case f.Allocator == Go:
			why = append(why, name+" is loaded, but Go does not use it")
		case next != nil:
			why = append(why, fmt.Sprintf("%s is loaded, but malloc is that of %s, or behind it that of %s", name, f.Object, next.path))
		default:
			why = append(why, fmt.Sprintf("%s is loaded, but malloc is that of %s", name, f.Object))
		}
	}
	return why
}

// mayBeUnnamed reports whether there are objects whose files were removed and
// whose names, as the loader opened them, cannot be read.
func (t *target) mayBeUnnamed() bool {
	return t.order == nil && (t.unread || slices.ContainsFunc(t.objects, func(o *object) bool { return o.deleted }))
}

// behind is the malloc that the one in use may call: of a wrapper that looks the
// next one up in the loader's order, or imports malloc by its other name. It is
// nil if the one in use is known, or can do neither.
func (t *target) behind(used *object) *object {
	if used == nil || t.program == nil || !used.exports("malloc") {
		return nil
	}
	if name, _, _ := identify(used); name != Unknown {
		return nil
	}
	const otherName = "__libc_malloc"
	order := t.searchOrder()
	i := slices.Index(order, used)
	switch {
	case i < 0:
		return nil
	case len(used.slots("dlsym")) > 0, len(used.slots("dlvsym")) > 0:
		return firstWith(order[i+1:], "malloc")
	case len(used.slots(otherName)) > 0:
		return firstWith(order, otherName)
	}
	return nil
}
