package message

import (
	"math"
	"strings"
)

// gap is how many bytes that say nothing may stand between two phrases.
const gap = 96

// byFirst holds the wordings by the first byte they can match.
var byFirst = func() (index [256][]int) {
	for k, w := range wordings {
		if p := w.parts[0]; p.place == 0 {
			index[p.words[0]] = append(index[p.words[0]], k)
		} else {
			for c := '0'; c <= '9'; c++ {
				index[c] = append(index[c], k)
			}
		}
	}
	return index
}()

// phraseAt returns the longest wording that matches at, -1 if none does.
func phraseAt(w *window, at int) (int, found) {
	best, longest := -1, found{}
	if at > 0 && digit(w.text[at]) && (digit(w.text[at-1]) || w.text[at-1] == '.' && at > 1 && digit(w.text[at-2])) {
		return best, longest // inside a number
	}
	for _, k := range byFirst[w.text[at]] {
		f, ok := match(wordings[k].parts, w.text, at)
		if ok && f.end > longest.end && (!wordings[k].last || w.endsLine(f.end)) {
			best, longest = k, f
		}
	}
	return best, longest
}

// endsLine reports whether the line ends after the byte before at.
func (w *window) endsLine(at int) bool {
	i := offset(w.squeezed, w.plain, at-1) + 1
	for i < len(w.plain) && (w.plain[i] == ' ' || w.plain[i] == '\t') {
		i++
	}
	return i == len(w.plain) || w.plain[i] == '\n'
}

// assemble reads the message whose first phrase is at the given place, and returns
// where its last one ends.
func (w *window) assemble(at int) (o *OOM, end int) {
	o = &OOM{Device: -1, Rank: -1}
	end = at
	for at < len(w.text) && at <= end+gap {
		if o.Backend == Native {
			if n := adviceAt(w.text[at:]); n > 0 {
				o.Advice = w.words(at, at+n)
				end = at + n
				break
			}
		}
		k, f := phraseAt(w, at)
		if k < 0 || wordings[k].next && at != end {
			at++
			continue
		}
		phrase := wordings[k]
		if o.Backend == "" {
			o.Backend = phrase.backend
		}
		if o.Backend != phrase.backend && !phrase.opens {
			at++
			continue
		}
		if o.Backend != phrase.backend || !phrase.set(o, f) {
			break
		}
		if f.absurd && (o.LimitBytes != &f.sizes[0] || !unset(o)) {
			o.Absurd = append(o.Absurd, w.words(at, f.end))
		}
		at, end = f.end, f.end
	}
	for end < len(w.text) && (w.text[end] == ')' || w.text[end] == '.') {
		end++
	}
	if unset(o) {
		o.LimitBytes = nil
	}
	return o, end
}

// unset reports whether the limit is 17179869184.00 GiB, PyTorch's word for none.
func unset(o *OOM) bool { return o.LimitBytes != nil && o.LimitBytes.High == math.MaxUint64 }

// isMessage reports whether o is a message and not prose or source code that merely
// mentions one.
func (o *OOM) isMessage() bool {
	return o.Backend != Native || len(o.Processes) > 0 ||
		o.TriedBytes != nil || o.TotalBytes != nil || o.AllocatedBytes != nil
}

// words returns the text between two places in one line.
func (w *window) words(from, to int) string {
	clean := w.plain[offset(w.squeezed, w.plain, from) : offset(w.squeezed, w.plain, to-1)+1]
	return strings.Join(strings.Fields(string(clean)), " ")
}

// adviceStarts begin what a message tells the user to do, adviceEnds end it.
var (
	adviceStarts = []string{
		"ifreservedmemoryis", "ifreservedbutunallocatedmemoryis", "pleaseuse`empty_cache`", "pleaseuseempty_cache", "usepytorch_mps_high_watermark_ratio",
	}
	adviceEnds = []string{"toavoidfragmentation.", "toavoidfragmentation", "cachedmemory.", "(maycausesystemfailure).", "todisableupperlimit"}
)

// adviceAt returns the length of the advice that text begins with, 0 if none.
func adviceAt(text string) int {
	const longest = 300
	for _, s := range adviceStarts {
		if !strings.HasPrefix(text, s) {
			continue
		}
		for _, e := range adviceEnds {
			if i := strings.Index(text[:min(len(text), longest)], e); i >= 0 {
				end := i + len(e)
				return end + reference(text[end:])
			}
		}
		return len(s)
	}
	return 0
}

// reference returns the length of the pointer to documentation after an advice.
func reference(text string) int {
	const see, and, conf, longest = "seedocumentationformemorymanagement", "andpytorch_", "alloc_conf", 200
	rest, ok := strings.CutPrefix(text, see)
	if !ok {
		return 0
	}
	rest = rest[:min(len(rest), longest)]
	switch {
	case strings.HasPrefix(rest, and):
		if i := strings.Index(rest, conf); i >= 0 {
			return len(see) + i + len(conf)
		}
	case strings.HasPrefix(rest, "(http"):
		if i := strings.IndexByte(rest, ')'); i >= 0 {
			return len(see) + i + 1
		}
	}
	return len(see)
}
