package diff

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/trace"
)

// sourceLines are the frames of a file, by line.
type sourceLines map[line]trace.FrameID

func (s sourceLines) sorted() []line { return slices.SortedFunc(maps.Keys(s), byPlace) }

// common counts the lines that two files both have.
func (s sourceLines) common(o sourceLines) int {
	n := 0
	for l := range s {
		if _, ok := o[l]; ok {
			n++
		}
	}
	return n
}

// filePairs finds which files of two sides are the same.
type filePairs struct {
	a, b  map[string]sourceLines
	out   map[string]string // file of a -> file of b
	taken map[string]bool   // files of b
}

// pairFiles finds for each file of a the one of b that is the same: by its
// path, else by its path below the installed packages, else by its name.
func pairFiles(a, b map[string]sourceLines) map[string]string {
	p := &filePairs{a, b, map[string]string{}, map[string]bool{}}
	for f := range a {
		if _, ok := b[f]; ok {
			p.pair(f, f)
		}
	}
	below := map[string]string{}
	for _, g := range p.left(b, p.taken) {
		if at, ok := libraryPath(g); ok {
			below[at] = g
		}
	}
	for _, f := range p.leftA() {
		at, ok := libraryPath(f)
		if g, found := below[at]; ok && found && !p.taken[g] {
			p.pair(f, g)
		}
	}
	p.byName()
	return p.out
}

func (p *filePairs) pair(f, g string) { p.out[f], p.taken[g] = g, true }

// left lists the files that have no pair yet, in order.
func (p *filePairs) left(all map[string]sourceLines, paired map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(f string) bool { return paired[f] })
}

func (p *filePairs) leftA() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(p.a)), func(f string) bool { return p.out[f] != "" })
}

// candidate is a pair of files of the same name.
type candidate struct {
	fileA, fileB string
	directories  int // next to the file that are the same
	lines        int // in common
}

// maxCandidates bounds the work where a program generates files by the
// hundred.
const (
	maxCandidates = 20_000
	maxLooked     = 1_000_000 // pairs
)

// byName pairs files of the same name, those first that have most directories
// in common, then those with most lines. A generated file has no directory that
// tells anything: half of its lines must be the same.
func (p *filePairs) byName() {
	named, made := map[string][]string{}, map[string]bool{}
	for _, g := range p.left(p.b, p.taken) {
		named[fileName(g)] = append(named[fileName(g)], g)
		made[g] = generated(g)
	}
	var all []candidate
	looked := 0
	for _, f := range p.leftA() {
		ownMade := generated(f)
		for _, g := range named[fileName(f)] {
			if looked++; looked > maxLooked {
				return
			}
			c := candidate{f, g, commonDirectories(f, g), p.a[f].common(p.b[g])}
			if ownMade || made[g] {
				if c.directories = 0; 2*c.lines < min(len(p.a[f]), len(p.b[g])) {
					continue
				}
			}
			if all = append(all, c); len(all) > maxCandidates {
				return
			}
		}
	}
	slices.SortStableFunc(all, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(y.directories, x.directories), cmp.Compare(y.lines, x.lines))
	})
	for _, c := range all {
		if p.out[c.fileA] == "" && !p.taken[c.fileB] {
			p.pair(c.fileA, c.fileB)
		}
	}
}

// commonDirectories counts the directories next to the file that are the same.
func commonDirectories(f, g string) int {
	x, y := strings.Split(path.Dir(f), "/"), strings.Split(path.Dir(g), "/")
	n := 0
	for n < len(x) && n < len(y) && x[len(x)-1-n] == y[len(y)-1-n] {
		n++
	}
	return n
}
