package message

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Frame is a place in a Python program, as a traceback prints it.
type Frame struct {
	File string // with / between its parts
	Line int
	Name string // of the function; empty if the traceback does not say
	Code string // the line, as far as carets mark it; empty if it is not printed
}

// frameStarts are how a frame begins: Python's, IPython's, that of a notebook's cell, rich's.
// Compiling them takes milliseconds, which programs that read no message are spared.
var frameStarts = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`^\s*(?:\|\s*)*File +"([^"\n]{1,1000}?) *", line (\d{1,9})(?:, in (.{1,200}))?`),
		regexp.MustCompile(`^File ([^\s"][^\n]{0,1000}?):(\d{1,9})(?:, in ([\w.<>]{1,200}))?`),
		regexp.MustCompile(`^(Cell In ?\[\d{1,9}\]), line (\d{1,9})(?:, in ([\w.<>]{1,200}))?`),
		regexp.MustCompile(`^[│|] (\S{1,1000}\.py):(\d{1,9}) in ([\w.<>]{1,200})`),
	}
})

var (
	carets       = regexp.MustCompile(`^\s*[~^]+\s*$`)
	ipythonCode  = regexp.MustCompile(`^-+> *\d+ (.*)`)
	ipythonOther = regexp.MustCompile(`^ *\d+( |$)`)
)

const tracebackHead = "Traceback (most recent call last)"

// frameOf reads the first line of a frame.
func frameOf(line string) (Frame, bool) {
	for _, pattern := range frameStarts() {
		if m := pattern.FindStringSubmatch(line); m != nil {
			n, err := strconv.Atoi(m[2])
			name, _, _ := strings.Cut(m[3], "(")
			return Frame{File: strings.ReplaceAll(m[1], `\`, "/"), Line: n, Name: strings.TrimSpace(name)}, err == nil
		}
	}
	return Frame{}, false
}

// traceback reads the traceback that ends in the line where a message begins, at
// start, from the lines above it that the same process wrote. Frames are
// innermost first, as in a snapshot.
func traceback(text string, start int) ([]Frame, origin) {
	const first, most = 4 << 10, 64 << 10 // bytes above the message
	for length := first; ; length *= 4 {
		above := text[max(0, start-length):start]
		cut := len(above) < start
		above = colourless(above)
		frames, own, whole := tracebackIn([]byte(above))
		if len(frames) == 0 && strings.Contains(above, `\n`) { // a string of JSON, or of Python
			frames, own, whole = tracebackIn(unescape(above))
		}
		if whole || len(frames) == 0 || !cut || length >= most {
			return frames, own
		}
	}
}

// tracebackIn reads the traceback at the end of a text. whole reports whether its
// beginning was found.
func tracebackIn(text []byte) (frames []Frame, own origin, whole bool) {
	at := bytes.LastIndexByte(text, '\n') + 1
	end, own := prefixOf(text[at:])
	// A prefix of a kind not known stands before the type of the exception, too.
	const longest = 120
	var head []byte
	if before := text[at+end:]; len(before) < longest {
		head = exceptionBefore.ReplaceAll(before, nil)
	}
	if bytes.Contains(bytes.TrimRight(head, " "), []byte(" ")) {
		head = nil // words, not a prefix
	}
	var below []string // of the frame whose first line is yet to come
	for at > 0 {
		stop := at - 1
		at = bytes.LastIndexByte(text[:stop], '\n') + 1
		end, of := prefixOf(text[at:stop])
		if !of.same(own) {
			continue
		}
		rest, found := bytes.CutPrefix(text[at+end:stop], head)
		if !found {
			continue
		}
		line := strings.TrimRight(string(rest), " ")
		if f, ok := frameOf(line); ok {
			f.Code = codeOf(below)
			frames, below = append(frames, f), nil
			continue
		}
		if strings.Contains(line, tracebackHead) || !inTraceback(line) {
			return frames, own, true
		}
		below = append(below, line)
	}
	return frames, own, false
}

// inTraceback reports whether a line can stand between two frames.
func inTraceback(line string) bool {
	return line == "" || line[0] == ' ' || line[0] == '\t' || strings.HasPrefix(line, "│") || strings.HasPrefix(line, "|") ||
		ipythonCode.MatchString(line) || ipythonOther.MatchString(line)
}

// codeOf returns the source of a frame from the lines below it, the last one
// first: what carets mark, else the line.
func codeOf(below []string) string {
	for i, line := range below {
		if m := ipythonCode.FindStringSubmatch(line); m != nil {
			return strings.TrimSpace(m[1])
		}
		if i+1 < len(below) && carets.MatchString(line) {
			from := indent([]byte(line))
			marked, to := below[i+1], min(len(strings.TrimRight(line, " ")), len(below[i+1]))
			if from < to {
				return strings.TrimSpace(marked[from:to])
			}
		}
	}
	if len(below) == 0 || strings.HasPrefix(below[len(below)-1], "│") {
		return ""
	}
	return strings.TrimSpace(below[len(below)-1])
}
