package message

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// Parse finds every out-of-memory message in text, in order. The error is
// [ErrNotFound] if there is none, and [ErrCrowded] if there are so many that only
// the last ones were read, which are returned.
func Parse(text string) ([]*OOM, error) {
	var all []*OOM
	done := reach{}
	line, counted := 1, 0
	anchors, left := places(text)
	for _, anchor := range anchors {
		by := writer(text, anchor)
		from := done.before(anchor, by)
		if anchor < from {
			continue
		}
		o, start, end := around(text, from, anchor)
		if o == nil {
			continue
		}
		if start >= counted {
			line += strings.Count(text[counted:start], "\n")
		} else {
			line -= strings.Count(text[start:counted], "\n")
		}
		counted = start
		o.Line, o.Text = line, text[start:end]
		o.Cut = o.unfinished() && !strings.Contains(text[end:], "\n")
		if n, ok := rawDevice(o.Text); ok && o.Device < 0 {
			o.Device, o.Version = n, release(203)
		}
		var head origin
		o.Traceback, head = traceback(text, start)
		o.Rank, o.PID, o.Time = head.rank, head.pid, head.time
		all = append(all, o)
		done[by] = end
	}
	if all == nil {
		return nil, ErrNotFound
	}
	slices.SortStableFunc(all, func(a, b *OOM) int { return a.Line - b.Line })
	all = joinRejections(all)
	if left {
		return all, ErrCrowded
	}
	return all, nil
}

// around reads the message at an anchor, if there is one that begins at or
// before it and not before from. It returns the message and where it stands.
func around(text string, from, anchor int) (o *OOM, start, end int) {
	const (
		lines, back       = 6, 512 // how far before the anchor a message may begin
		first, last, room = 1 << 10, 96 << 10, 512
	)
	own := writer(text, anchor)
	earliest := max(from, anchor-back)
	if own != nobody {
		earliest = max(from, anchor-among)
	}
	begin := anchor
	for n := 0; n < lines && begin > earliest; {
		begin = earliest + max(0, strings.LastIndexByte(text[earliest:begin], '\n'))
		if !own.other(writer(text, begin+1)) {
			n++
		}
	}
	for length := first; ; length *= 2 {
		stop := min(len(text), anchor+length)
		w := newWindow(text[begin:stop])
		alone := w.keepWriter(anchor-begin, writer(text, begin))
		o, start, end = w.message(anchor - begin)
		complete := begin+end+room < stop && (alone || len(squeeze(w.plain[end:]).text) > room/2)
		if o == nil || stop == len(text) || complete || length >= last {
			return o, begin + start, begin + end
		}
	}
}

// window is a piece of text in which one message is looked for.
type window struct {
	source string
	lines  []byte // without terminal sequences and escapes
	plain  []byte // without prefixes of lines too
	squeezed
}

func newWindow(text string) *window {
	w := &window{source: text, lines: unescape(text)}
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
	opener := w.opener(0, anchor)
	place := anchor
	if opener >= 0 {
		place = offset(w.squeezed, w.plain, opener)
	}
	if w.blankRepeated(place) {
		opener = w.opener(0, anchor) // the message may begin earlier now
	}
	for ; opener >= 0; opener = w.opener(opener+1, anchor) {
		o, last := w.assemble(opener)
		start = offset(w.squeezed, w.plain, opener)
		var raised bool
		o.Exception, raised = w.exception(start)
		if strings.HasPrefix(w.text[last:], "occurredwhen") { // vLLM's, after PyTorch's own: see Refusal
			continue
		}
		if raised || o.isMessage() {
			o.Version = guess(o, w.text[opener:last])
			return o, start, offset(w.squeezed, w.plain, last-1) + 1
		}
	}
	return nil, 0, 0
}

// opener returns where the next phrase stands that a message can begin with,
// -1 if there is none up to the offset anchor.
func (w *window) opener(at, anchor int) int {
	for ; at < len(w.text); at++ {
		k, _ := phraseAt(w, at)
		if k >= 0 && wordings[k].opens {
			if offset(w.squeezed, w.plain, at) > anchor {
				break
			}
			return at
		}
	}
	return -1
}

// blankRepeated blanks what stands in front of start and in the same shape in
// front of other lines: a prefix of a kind not known.
func (w *window) blankRepeated(start int) bool {
	own := lineStart(w.lines, start)
	head := w.lines[own:start]
	if len(bytes.TrimSpace(w.plain[own:start])) == 0 {
		return false
	}
	longest := 0
	for at := 0; at < len(w.lines); {
		end := lineEnd(w.lines, at)
		if at != own {
			inHead, inLine := sharedPrefix(head, w.lines[at:end])
			blank(w.plain, at, at+inLine)
			longest = max(longest, inHead)
		}
		at = end + 1
	}
	blank(w.plain, own, own+longest)
	w.squeezed = squeeze(w.plain)
	return longest > 0
}

func lineStart(b []byte, at int) int {
	for at > 0 && b[at-1] != '\n' {
		at--
	}
	return at
}

var exceptionBefore = regexp.MustCompile(`([A-Za-z_][\w.]*(?:Error|Exception))(\s*:)?[\s=(]*["'\x60]*\s*$`)

// exception is the Python type written before start, if any, and whether it
// stands there as Python prints an exception that was raised.
func (w *window) exception(start int) (name string, raised bool) {
	const longest = 120
	for _, text := range [][]byte{w.lines, w.plain} {
		if m := exceptionBefore.FindSubmatch(text[max(0, start-longest):start]); m != nil {
			return string(m[1]), len(m[2]) > 0
		}
	}
	return "", false
}
