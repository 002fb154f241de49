package detect

import (
	"debug/elf"
	"math"
	"slices"
	"strings"
)

// evidence says how an allocator was recognised.
type evidence string

const (
	byExports evidence = "its exported symbols"
	bySymbols evidence = "its symbol table"
	byTexts   evidence = "texts in its code"
)

// identify returns the allocator that the malloc of an object belongs to. The
// name is [Unknown] if nothing shows it; why may then say more.
func identify(o *object) (name string, by evidence, why string) {
	for i := range allocators {
		if o.exports(allocators[i].exports...) {
			return allocators[i].name, byExports, ""
		}
	}
	// A program with a malloc of its own exports little else.
	if name := ownerOfMalloc(symbolTable(o)); name != "" {
		return name, bySymbols, ""
	}
	return identifyByTexts(o)
}

// ownerOfMalloc returns the allocator that the malloc of a symbol table belongs
// to; empty if there is none. If there are several allocators, the other is called
// by names of its own: malloc lies beside the functions of its allocator, as they
// come from one source file.
func ownerOfMalloc(symbols map[string]uint64) string {
	malloc := symbols["malloc"]
	owner, nearest := "", uint64(math.MaxUint64)
	for i := range allocators {
		row := &allocators[i]
		names := row.internals
		if !isLibC(row.name) {
			names = slices.Concat(names, row.exports)
		}
		for _, n := range names {
			address, ok := symbols[n]
			if distance := max(address, malloc) - min(address, malloc); ok && distance < nearest {
				owner, nearest = row.name, distance
			}
		}
	}
	return owner
}

// identifyByTexts is for what is stripped. It answers only if the texts are of
// one allocator.
func identifyByTexts(o *object) (name string, by evidence, why string) {
	found := allocatorsByText(o)
	if len(found) == 2 && found[0] == Jemalloc && isLibC(found[1]) {
		// Beside another malloc it has other names, and so has its variable.
		if strings.Join(confNames(o), "") == "MALLOC_CONF" {
			found = found[:1]
		} else {
			found = found[1:]
		}
	}
	switch len(found) {
	case 0:
		return Unknown, "", ""
	case 1:
		return found[0], byTexts, ""
	}
	return Unknown, byTexts, "it has texts of " + strings.Join(found, " and ")
}

// allocatorsByText lists the allocators of which an object has texts.
func allocatorsByText(o *object) []string {
	if o.textsRead {
		return o.texts
	}
	o.textsRead = true
	var all []string
	for i := range allocators {
		all = append(all, allocators[i].texts...)
	}
	has := o.which(all...)
	for i := range allocators {
		if slices.ContainsFunc(allocators[i].texts, func(t string) bool { return slices.Contains(has, t) }) {
			o.texts = append(o.texts, allocators[i].name)
		}
	}
	return o.texts
}

func hasAny(symbols map[string]uint64, names []string) bool {
	for _, n := range names {
		if _, ok := symbols[n]; ok {
			return true
		}
	}
	return false
}

// symbolTable is the table that strip removes, as far as the table of
// allocators names its symbols; nil if there is none.
func symbolTable(o *object) map[string]uint64 {
	if o.file == nil || o.symbolsRead {
		return o.symbols
	}
	o.symbolsRead = true
	f, err := elf.NewFile(o.file)
	if err != nil {
		return nil
	}
	all, err := f.Symbols()
	if err != nil {
		return nil
	}
	wanted := map[string]bool{"malloc": true}
	for i := range allocators {
		for _, n := range slices.Concat(allocators[i].exports, allocators[i].prefixed, allocators[i].internals) {
			wanted[n] = true
		}
	}
	o.symbols = map[string]uint64{}
	for _, s := range all {
		if s.Section != elf.SHN_UNDEF && (wanted[s.Name] || isPrefixed(s.Name)) {
			o.symbols[s.Name] = s.Value
		}
	}
	return o.symbols
}

// isPrefixed reports whether a symbol is jemalloc's, with any prefix.
func isPrefixed(name string) bool { return strings.HasSuffix(name, "_mallctl") }

// prefixedJemalloc reports whether there is a jemalloc with prefixed names.
func prefixedJemalloc(symbols map[string]uint64) bool {
	for name := range symbols {
		if isPrefixed(name) {
			return true
		}
	}
	return false
}

// others lists the allocators that are in the process and are not its malloc:
// loaded but unused, or called by names of their own. The C library always is.
func (t *target) others(used *object, name string) []Finding {
	list := []Finding{}
	next := t.behind(used)
	for _, o := range t.objects {
		for i := range allocators {
			row := &allocators[i]
			if isLibC(row.name) || o == used && row.name == name {
				continue
			}
			how, confidence := t.contains(o, row)
			if how == loadedOnly && o == next {
				how = "loaded; it may be used behind " + used.name()
			}
			if name == Go && confidence == Likely {
				continue // a Go program may well be about allocators, but does not hold one
			}
			if how != "" {
				list = append(list, Finding{
					Allocator: row.name, Version: versionOf(row.name, o), Object: o.path, How: how, Confidence: confidence,
				})
			}
		}
	}
	return list
}

// How an allocator is in a process without being its malloc.
const (
	loadedOnly = "loaded, but malloc is another"
	ownNames   = "inside it under names of its own: only code that calls these uses it"
	ownTexts   = "texts of it are in the program, which may call it under names of its own"
)

// contains reports whether and how an allocator is in an object.
func (t *target) contains(o *object, row *allocator) (how string, confidence Confidence) {
	switch {
	case o.exports(row.exports...) && o.exports("malloc"):
		return loadedOnly, Certain
	case o.exports(row.exports...), o.exports(row.prefixed...):
		return ownNames, Certain
	case o != t.program:
		return "", "" // to read all of every object takes too long
	case hasAny(symbolTable(o), row.prefixed), hasAny(symbolTable(o), row.exports), row.name == Jemalloc && prefixedJemalloc(symbolTable(o)):
		return ownNames, Certain
	case slices.Contains(allocatorsByText(o), row.name):
		return ownTexts, Likely
	}
	return "", ""
}
