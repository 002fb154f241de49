package detect

import (
	"debug/buildinfo"
	"fmt"
	"slices"
)

// find answers which malloc the process uses. It tries, in this order: a Go
// program, a static program, the slot, the order in which the loader looks.
func (t *target) find() (Finding, *object) {
	p := t.program
	if p == nil {
		return Finding{Allocator: Unknown, How: "the program is no 64-bit ELF file", Confidence: NotCertain}, nil
	}
	if version, ok := goVersion(p); ok {
		return Finding{
			Allocator: Go, Version: &version, Object: p.path, Confidence: Certain,
			How: "the program has the build information of " + version,
		}, p
	}
	if t.static() {
		return t.staticProgram(), p
	}
	return t.dynamic()
}

// static reports whether the program is static: there is no loader, and all code
// is in one file.
func (t *target) static() bool { return t.program.interp == "" && t.order == nil }

// goVersion reports whether the Go linker made a program.
func goVersion(p *object) (string, bool) {
	if p.file == nil {
		return "", false
	}
	info, err := buildinfo.Read(p.file)
	if err != nil {
		return "", false
	}
	for _, s := range info.Settings {
		// Go code inside a program of another language.
		if s.Key == "-buildmode" && (s.Value == "c-archive" || s.Value == "c-shared" || s.Value == "plugin") {
			return "", false
		}
	}
	return info.GoVersion, true
}

func (t *target) staticProgram() Finding {
	p := t.program
	name, by, why := identify(p)
	f := Finding{Allocator: name, Object: p.path, Version: versionOf(name, p)}
	symbols := symbolTable(p)
	kind := "the program is static"
	if symbols == nil && p.file != nil {
		kind += " and stripped"
	}
	_, ownMalloc := symbols["malloc"]
	switch {
	case name == Unknown && ownMalloc:
		f.How, f.Confidence = kind+" and has a malloc of its own, which is none of those that are known", NotCertain
	case name == Unknown && why != "":
		f.How, f.Confidence = kind+", and "+why, NotCertain
	case name == Unknown && symbols != nil:
		f.How, f.Confidence = kind+" and has no malloc that is known", NotCertain
	case name == Unknown:
		f.How, f.Confidence = kind+", and no text in it tells", NotCertain
	case by == byTexts:
		f.How, f.Confidence = kind+": "+string(by), Likely
	default:
		f.How, f.Confidence = kind+": "+string(by), Certain
	}
	return f
}

// dynamic answers for a program with a loader.
func (t *target) dynamic() (Finding, *object) {
	provider, how, confidence := t.provider()
	if provider == nil {
		return Finding{Allocator: Unknown, How: how, Confidence: NotCertain}, nil
	}
	name, by, why := identify(provider)
	f := Finding{Allocator: name, Object: provider.path, Version: versionOf(name, provider), How: how, Confidence: confidence}
	switch {
	case name == Unknown && why != "":
		f.How, f.Confidence = how+"; what it is, is not known: "+why, NotCertain
	case name == Unknown:
		f.How, f.Confidence = how+"; what it is, is not known", NotCertain
	case by == byTexts:
		f.How, f.Confidence = how+"; known by "+string(by), Likely
	default:
		f.How = how + "; known by " + string(by)
	}
	return f, provider
}

// provider finds the object whose malloc is called.
func (t *target) provider() (o *object, how string, confidence Confidence) {
	if t.hasOwnMalloc(t.program) {
		return t.program, "the program has a malloc of its own", Certain
	}
	if t.mem != nil {
		if o, how := t.slot(); o != nil || how != "" {
			return o, how, Certain
		}
		if o := firstWith(t.order, "malloc"); o != nil {
			return o, "link order: the loader has not looked malloc up yet, and this object is the first that has it", Likely
		}
	}
	order := t.linkOrder()
	if o := firstWith(order, "malloc"); o != nil {
		why := "the loader's list cannot be found"
		if t.mem == nil {
			why = "the memory of the process may not be read"
		}
		return o, "link order: " + why + "; of the objects it was linked with this is the first that has malloc", Likely
	}
	return nil, "no object of the process exports malloc", NotCertain
}

// hasOwnMalloc reports whether the program calls a malloc of its own.
// Then it does not import malloc.
func (t *target) hasOwnMalloc(p *object) bool {
	if p.exports("malloc") {
		return true
	}
	if len(p.slots("malloc")) > 0 {
		return false
	}
	_, ok := symbolTable(p)["malloc"]
	return ok
}

func firstWith(list []*object, symbol string) *object {
	for _, o := range list {
		if o.exports(symbol) {
			return o
		}
	}
	return nil
}

// slot reads where calls of malloc go. The importer is the program; if that
// never calls malloc, as a python that is only a shell around libpython, the
// interpreter's library, then any other, at last the C library for its own
// calls. An empty answer means that none is bound yet.
func (t *target) slot() (*object, string) {
	for _, importer := range t.importers() {
		for _, place := range importer.slots("malloc") {
			address, err := t.mem.Word(place + importer.bias)
			if err != nil || address == 0 {
				continue
			}
			o := t.objectAt(address)
			if o != nil && (o == importer || o == t.program) && !o.exports("malloc") {
				// A stub: of lazy binding, or that of a program which has
				// taken the address of malloc.
				continue
			}
			how := fmt.Sprintf("the malloc slot of %s points into it", importer.name())
			if o == nil {
				return nil, fmt.Sprintf("the malloc slot of %s points to code of no file", importer.name())
			}
			if !o.exports("malloc") {
				how += ", but not by the loader: it exports no malloc"
			}
			return o, how
		}
	}
	return nil, ""
}

// importers lists the objects whose malloc slot may be read, best first.
func (t *target) importers() []*object {
	list := t.order
	if list == nil {
		list = t.objects
	}
	rank := func(o *object) int {
		switch {
		case o == t.program:
			return 0
		case isPython(o):
			return 1
		case !o.exports("malloc"):
			return 2
		}
		return 3
	}
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b *object) int { return rank(a) - rank(b) })
	return sorted
}

// isPython reports whether the object contains the Python interpreter.
func isPython(o *object) bool { return o.exports("Py_BytesMain", "Py_Main") }
