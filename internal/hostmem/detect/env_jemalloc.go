package detect

import (
	"fmt"
	"slices"
	"strings"
)

// ignoredByJemalloc checks the name, which depends on how it was built, and
// each option of the list.
func ignoredByJemalloc(name, value string, f Finding, used *object) []string {
	names := confNames(used)
	if len(names) > 0 && !slices.Contains(names, name) {
		return []string{"this jemalloc reads " + strings.Join(names, " or ")}
	}
	var why []string
	options, rest := confOptions(value)
	for _, o := range options {
		if !used.has(o.name + "\x00") {
			why = append(why, fmt.Sprintf("this jemalloc does not have the option %s", o.name))
		} else if takes := o.refused(f.Version); takes != "" {
			why = append(why, fmt.Sprintf("jemalloc does not take %q for %s: it takes %s", o.value, o.name, takes))
		}
	}
	if rest != "" {
		why = append(why, fmt.Sprintf("jemalloc cannot read it from %q on, and drops that", rest))
	}
	return why
}

// confNames are the names of jemalloc's variable in an object: MALLOC_CONF with
// the prefix it was built with.
func confNames(o *object) []string {
	var names []string
	o.around("MALLOC_CONF\x00", 32, func(w window) bool {
		i := len(w.before)
		for i > 0 && isNameByte(w.before[i-1]) {
			i--
		}
		if name := string(w.before[i:]) + "MALLOC_CONF"; !slices.Contains(names, name) {
			names = append(names, name)
		}
		return false
	})
	return names
}

// confOption is one "name:value" of jemalloc's list.
type confOption struct {
	name, value string
}

// confOptions splits a list as every jemalloc does. It stops at the first name
// that has another byte than letters, digits and underscores, or no colon after
// it: the rest is not read.
func confOptions(list string) (options []confOption, rest string) {
	for list != "" {
		n := 0
		for n < len(list) && isNameByte(list[n]) {
			n++
		}
		if n == len(list) || list[n] != ':' {
			return options, list
		}
		value, after, _ := strings.Cut(list[n+1:], ",")
		options = append(options, confOption{list[:n], value})
		list = after
	}
	return options, ""
}

// confRule says which values an option takes: words, or a whole number.
type confRule struct {
	words  []string
	begins bool // the beginning of a word is enough
	number bool
	signed bool  // else a negative number is taken for a huge one
	least  int64 // of the number
}

var confBool = confRule{words: []string{"true", "false"}}

// confRuleOf is the rule of an option that had the same rule in every release
// since 4.0, or since the version that it names. Of others nothing is said.
func confRuleOf(name string, version *string) (confRule, bool) {
	switch name {
	case "abort", "abort_conf", "background_thread", "cache_oblivious", "confirm_conf", "hpa", "prof", "prof_accum", "prof_active", "prof_final",
		"prof_gdump", "prof_leak", "prof_leak_error", "prof_log", "prof_stats", "prof_sys_thread_name", "prof_thread_active_init", "prof_unbias",
		"redzone", "retain", "stats_print", "tcache", "trust_madvise", "utrace", "xmalloc", "zero":
		return confBool, true
	case "junk":
		return confRule{words: []string{"true", "false", "alloc", "free"}}, true
	case "dss":
		return confRule{words: []string{"disabled", "primary", "secondary"}, begins: true}, true
	case "metadata_thp":
		return confRule{words: []string{"disabled", "auto", "always"}, begins: true}, true
	case "percpu_arena":
		return confRule{words: []string{"disabled", "percpu", "phycpu"}, begins: true}, true
	case "thp":
		if version == nil {
			return confRule{}, false
		}
		if olderThan(version, 5, 1) {
			return confBool, true
		}
		return confRule{words: []string{"default", "always", "never"}, begins: true}, true
	case "dirty_decay_ms", "muzzy_decay_ms", "decay_time", "lg_dirty_mult", "lg_prof_interval", "mutex_max_spin", "prof_recent_alloc_max", "stats_interval":
		return confRule{number: true, signed: true, least: -1}, true
	case "narenas":
		r := confRule{number: true, least: 1}
		if !olderThan(version, 5, 3) {
			r.words = []string{"default"}
		}
		return r, true
	case "lg_chunk", "lg_extent_max_active_fit", "lg_prof_sample", "lg_tcache_flush_large_div", "lg_tcache_flush_small_div", "lg_tcache_max",
		"max_background_threads", "oversize_threshold", "quarantine", "san_guard_large", "san_guard_small", "tcache_gc_delay_bytes",
		"tcache_gc_incr_bytes", "tcache_max", "tcache_nslots_large", "tcache_nslots_small_max", "tcache_nslots_small_min":
		return confRule{number: true}, true
	}
	return confRule{}, false
}

// refused says what an option takes if it does not take its value; empty if it
// does or is not known.
func (o confOption) refused(version *string) string {
	rule, ok := confRuleOf(o.name, version)
	if !ok {
		return ""
	}
	if slices.ContainsFunc(rule.words, func(w string) bool { return w == o.value || rule.begins && strings.HasPrefix(w, o.value) }) {
		return ""
	}
	if !rule.number {
		return strings.Join(rule.words[:len(rule.words)-1], ", ") + " or " + rule.words[len(rule.words)-1]
	}
	takes := "a whole number"
	n := leadingNumber(o.value, 0)
	switch {
	case !n.digits || n.overflow || n.rest != "":
	case rule.signed && n.signed() < rule.least, !rule.signed && !n.negative && n.value < uint64(rule.least):
		takes = fmt.Sprintf("%d or more", rule.least)
	default:
		return ""
	}
	if len(rule.words) > 0 {
		takes += " or " + rule.words[0]
	}
	return takes
}

// confBackground reports whether lists of options ask for a background thread;
// later lists override earlier ones.
func confBackground(version *string, lists ...string) bool {
	asked := false
	for _, list := range lists {
		options, _ := confOptions(list)
		for _, o := range options {
			if o.name == "background_thread" && o.refused(version) == "" {
				asked = o.value == "true"
			}
		}
	}
	return asked
}
