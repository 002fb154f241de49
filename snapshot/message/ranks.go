package message

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// process tells the writers of a log apart. Rank is -1 and pid 0 where a line
// does not say.
type process struct{ rank, pid int }

// nobody is who wrote a line that does not say.
var nobody = process{rank: -1}

// writerOf returns the process that wrote a line: what the outermost prefix says
// that says anything, as only the launcher's is on every line.
func writerOf(line []byte) process {
	const most, longest = 12, 512
	line = line[:min(len(line), longest)]
	for range most {
		loc := findPrefix(line)
		if loc == nil || indent(line) > 1 {
			break
		}
		if p := processIn(line[:loc[1]]); p != nobody {
			return p
		}
		line = line[loc[1]:]
	}
	return nobody
}

// writer returns the process that wrote the line around a place.
func writer(text string, at int) process {
	const longest = 4096 // a longer line does not say
	first := max(0, at-longest)
	start := strings.LastIndexByte(text[first:at], '\n') + 1
	if start == 0 && first > 0 {
		return nobody
	}
	line, _, _ := strings.Cut(text[first+start:min(len(text), first+start+longest)], "\n")
	return writerOf([]byte(colourless(line)))
}

// writer returns the process that wrote the line between two offsets.
func (w *window) writer(start, end int) process {
	if line := w.source[start:end]; strings.IndexByte(line, escape) >= 0 {
		return writerOf([]byte(colourless(line)))
	}
	return writerOf(w.lines[start:end])
}

// other reports whether two lines are of different processes for certain: one may
// say less than the other.
func (p process) other(q process) bool {
	return p.rank >= 0 && q.rank >= 0 && p.rank != q.rank || p.pid > 0 && q.pid > 0 && p.pid != q.pid
}

// among is how far before an anchor a message may begin if lines of other
// processes stand between.
const among = 4096

// reach is where the last message of each process ends.
type reach map[process]int

// before returns where the message of a process around anchor begins at the
// earliest. It forgets what is too far away to matter.
func (r reach) before(anchor int, p process) int {
	from := 0
	for q, end := range r {
		if end < anchor-among {
			delete(r, q)
		} else if !p.other(q) {
			from = max(from, end)
		}
	}
	return from
}

// keepWriter blanks the lines of other processes than the one that wrote the line
// at anchor, since the lines of ranks come in any order. Lines that do not say who
// wrote them stay. The window may begin inside a line; first wrote that one. alone
// reports whether there were no others.
func (w *window) keepWriter(anchor int, first process) (alone bool) {
	own := first
	if i := lineStart(w.lines, anchor); i > 0 {
		own = w.writer(i, lineEnd(w.lines, i))
	}
	if own == nobody {
		return true
	}
	alone = true
	for start := 0; start < len(w.lines); {
		end := lineEnd(w.lines, start)
		by := first
		if start > 0 {
			by = w.writer(start, end)
		}
		if by.other(own) {
			blank(w.lines, start, end)
			blank(w.plain, start, end)
			alone = false
		}
		start = end + 1
	}
	if !alone {
		w.squeezed = squeeze(w.plain)
	}
	return alone
}

// unfinished reports whether the numbers that end every message of PyTorch's
// allocator are missing.
func (o *OOM) unfinished() bool {
	return o.Backend == Native && o.AllocatedBytes == nil && o.ReservedBytes == nil
}

// rawByte is what 2.3 printed for a device: the byte itself, as loggers, JSON and
// pagers write it. Tabs and line ends may come from a broken line.
var rawByte = regexp.MustCompile(`GPU (?:([\x00-\x08\x0b\x0c\x0e-\x1f])|\\+(?:x|u00)([01][0-9a-f])|\^([@-_])) ?has a total capac`)

// rawDevice returns the device of a message in which it is a raw byte.
func rawDevice(text string) (int, bool) {
	m := rawByte.FindStringSubmatch(text)
	switch {
	case m == nil:
		return 0, false
	case m[1] != "":
		return int(m[1][0]), true
	case m[2] != "":
		n, err := strconv.ParseInt(m[2], 16, 0)
		return int(n), err == nil
	}
	return int(m[3][0] - '@'), true
}

// joinRejections gives the errors of 2.12's throw_on_cudamalloc_oom the numbers
// of the warning before them, which is then not a message of its own.
func joinRejections(all []*OOM) []*OOM {
	last := map[process]*OOM{}
	joined := map[*OOM]bool{}
	for _, o := range all {
		by := process{o.Rank, o.PID}
		if w := last[by]; w != nil && w.Platform == "" && o.Platform != "" && w.rejected() && o.rejected() && *w.TriedBytes == *o.TriedBytes {
			o.ReservedBytes, o.LimitBytes, o.TotalBytes = w.ReservedBytes, w.LimitBytes, w.TotalBytes
			joined[w] = true
		}
		last[by] = o
	}
	return slices.DeleteFunc(all, func(o *OOM) bool { return joined[o] })
}

func (o *OOM) rejected() bool {
	return o.TriedBytes != nil && strings.Contains(squeeze(o.Text).text, "preemptivelyreject")
}
