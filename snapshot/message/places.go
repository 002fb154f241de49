package message

import (
	"slices"
	"strings"
)

// anchors are words, without blanks; every message has at least one of them.
var anchors = []string{
	"outofmemory", "triedtoallocate", "totalcapac", "oftheallocatedmemory", "isallocatedbypytorch", "allocationondevice",
	"alloc_failed", "cudacalloc", "out_of_memory", "failedwithoom", "preemptivelyrejecting",
	"invalidbuffersize", "nvml_success", "out_of_device_memory", "out_of_resources",
}

// maxPlaces is how many anchors of a text are looked at.
const maxPlaces = 1 << 14

// places returns the offsets of the anchors in text that may belong to a
// message, in order. If there are very many, they are the last ones, and left
// says so.
func places(text string) (all []int, left bool) {
	looked := 0
	for _, p := range slices.Backward(passages(text)) {
		if looked >= maxPlaces {
			left = true
			break
		}
		w := newWindow(text[p.start:p.end])
		for _, a := range anchors {
			for i := 0; ; i += len(a) {
				j := strings.Index(w.text[i:], a)
				if j < 0 {
					break
				}
				i += j
				looked++
				if w.promising(i) {
					all = append(all, p.start+offset(w.squeezed, w.plain, i))
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all), left
}

// promising reports cheaply whether the anchor may belong to a message: one can be
// read there, or sizes follow and a prefix of an unknown kind may have hidden the
// words.
func (w *window) promising(at int) bool {
	const before, after = 160, 200
	for q := max(0, at-before); q <= at; q++ {
		if k, f := phraseAt(w, q); k < 0 || !wordings[k].opens || f.end <= at {
			continue
		}
		if o, _ := w.assemble(q); o.isMessage() {
			return true
		}
		if _, raised := w.exception(offset(w.squeezed, w.plain, q)); raised {
			return true
		}
	}
	rest := w.text[at:min(len(w.text), at+after)]
	return strings.Contains(rest, "ib") || strings.Contains(rest, "bytes")
}

type passage struct{ start, end int }

// stems are parts of words such that a message, however broken, has one in
// every few lines, or a size.
var stems = []string{"emory", "EMORY", "ut of", "llocat", "LLOC", "OOM", "alloc ", "apac", "buffer size", "UT_OF"}

// sizeEnd is the end of every size. Many a log has one on each line, so only those
// near a stem count.
const sizeEnd = "iB"

// nearby is how far from a stem a size may be: more than a message is long, with
// something before each of its lines.
const nearby = 32 << 10

// longPassage is where a passage ends though the next one touches it: a window
// takes several times its memory.
const longPassage = 256 << 10

// passages returns the parts of text that may hold an anchor: the lines with
// a stem and those beside them. Most of a log is none, and need not be cleaned.
func passages(text string) []passage {
	var at []int
	for _, stem := range stems {
		at = appendAll(at, text, stem, 0, len(text))
	}
	slices.Sort(at)
	end := 0 // of what was searched for sizes
	for _, i := range at {
		from, to := max(end, i-nearby), min(len(text), i+nearby)
		if from < to {
			at = appendAll(at, text, sizeEnd, from, to)
			end = to
		}
	}
	slices.Sort(at)
	var all []passage
	for _, i := range at {
		start, end := neighbours(text, i)
		if n := len(all); n > 0 && start <= all[n-1].end && all[n-1].end-all[n-1].start < longPassage {
			all[n-1].end = max(end, all[n-1].end)
			continue
		}
		all = append(all, passage{start, end})
	}
	return all
}

// appendAll appends the offsets of a word in text between two others.
func appendAll(at []int, text, word string, from, to int) []int {
	for {
		j := strings.Index(text[from:to], word)
		if j < 0 {
			return at
		}
		at = append(at, from+j)
		from += j + len(word)
	}
}

// neighbours returns the bounds of the lines around i.
func neighbours(text string, i int) (start, end int) {
	const lines, longest = 8, 2048
	first, last := max(0, i-longest), min(len(text), i+longest)
	start, end = i, i
	for range lines {
		start = first + max(0, strings.LastIndexByte(text[first:start], '\n'))
		if j := strings.IndexByte(text[end:last], '\n'); j >= 0 {
			end += j + 1
		} else {
			end = last
		}
	}
	return start, end
}
