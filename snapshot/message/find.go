package message

import (
	"regexp"
	"slices"
	"strings"
)

// anchors are words, without blanks, of which every message has at least one.
var anchors = []string{
	"outofmemory", "triedtoallocate", "totalcapac", "isallocatedbypytorch", "allocationondevice",
	"alloc_failed", "cudacalloc", "out_of_memory", "failedwithoom",
}

// Parse finds every out-of-memory message in text, in order. The error is
// [ErrNotFound] if there is none.
func Parse(text string) ([]*OOM, error) {
	var all []*OOM
	done, line, counted := 0, 1, 0
	for _, anchor := range places(text) {
		if anchor < done {
			continue
		}
		o, start, end := around(text, done, anchor)
		if o == nil {
			continue
		}
		line += strings.Count(text[counted:start], "\n")
		counted = start
		o.Line, o.Text = line, text[start:end]
		all = append(all, o)
		done = end
	}
	if all == nil {
		return nil, ErrNotFound
	}
	return all, nil
}

// places returns the offsets of the anchors in text, in order.
func places(text string) []int {
	text = Plain(text)
	s := squeeze(text)
	var at []int
	for _, a := range anchors {
		for i := 0; ; i += len(a) {
			j := strings.Index(s.text[i:], a)
			if j < 0 {
				break
			}
			i += j
			at = append(at, offset(s, text, i))
		}
	}
	slices.Sort(at)
	return at
}

// around reads the message at an anchor, if there is one that begins at or
// before it and not before from. It returns the message and where it stands.
func around(text string, from, anchor int) (o *OOM, start, end int) {
	const (
		lines, back       = 3, 512 // how far before the anchor a message may begin
		first, last, room = 3 << 10, 96 << 10, 1 << 10
	)
	begin := anchor
	for range lines {
		begin = max(from, anchor-back, strings.LastIndexByte(text[:begin], '\n'))
	}
	for length := first; ; length *= 2 {
		stop := min(len(text), anchor+length)
		o, start, end = newWindow(text[begin:stop]).message(anchor - begin)
		if o == nil || stop == len(text) || begin+end+room < stop || length >= last {
			return o, begin + start, begin + end
		}
	}
}

// window is a piece of text in which one message is looked for.
type window struct {
	lines []byte // without terminal sequences and escapes
	plain []byte // without prefixes of lines too
	squeezed
}

func newWindow(text string) *window {
	w := &window{lines: unescape(text)}
	w.plain = slices.Clone(w.lines)
	for start := 0; start < len(w.plain); {
		end := lineEnd(w.plain, start)
		blankPrefix(w.plain[start:end])
		start = end + 1
	}
	w.squeezed = squeeze(w.plain)
	return w
}

// message returns the first message that begins at or before the offset
// anchor, and its place.
func (w *window) message(anchor int) (o *OOM, start, end int) {
	for at := 0; at < len(w.text); at++ {
		k, _ := phraseAt(w, at)
		if k < 0 || !wordings[k].opens {
			continue
		}
		start = offset(w.squeezed, w.plain, at)
		if start > anchor {
			break
		}
		w.blankRepeated(start)
		// Only bytes after start were blanked, so at still stands there.
		o, last := w.assemble(at)
		o.Exception = w.exception(start)
		if o.real() {
			o.Version = guess(o, w.text[at:last])
			return o, start, offset(w.squeezed, w.plain, last-1) + 1
		}
	}
	return nil, 0, 0
}

// blankRepeated blanks on the lines after start what also stands before it on
// its own: a prefix of a kind not known.
func (w *window) blankRepeated(start int) {
	head := w.lines[lineStart(w.lines, start):start]
	if len(strings.TrimSpace(string(head))) == 0 {
		return
	}
	changed := false
	for next := lineEnd(w.lines, start) + 1; next < len(w.lines); {
		end := lineEnd(w.lines, next)
		if n := sharedPrefix(head, w.lines[next:end]); n > 0 {
			blank(w.plain, next, next+n)
			changed = true
		}
		next = end + 1
	}
	if changed {
		w.squeezed = squeeze(w.plain)
	}
}

func lineStart(b []byte, at int) int {
	for at > 0 && b[at-1] != '\n' {
		at--
	}
	return at
}

var exceptionBefore = regexp.MustCompile(`([A-Za-z_][\w.]*(?:Error|Exception))[\s:=(]*["'\x60]*\s*$`)

// exception is the Python type written before start, if any.
func (w *window) exception(start int) string {
	const longest = 120
	if m := exceptionBefore.FindSubmatch(w.plain[max(0, start-longest):start]); m != nil {
		return string(m[1])
	}
	return ""
}
