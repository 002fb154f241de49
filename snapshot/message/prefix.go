package message

import (
	"bytes"
	"regexp"
)

// prefix is one piece of what loggers and quoting put in front of a line.
var prefix = regexp.MustCompile(`^[ \t]*(?:` +
	`>+|&gt;` + // quoted mail and markdown
	`|[EWIFD]\d{4} \d\d:\d\d:\d\d(?:[.,]\d+)?(?: +\d+ +[\w./-]+:\d+\])?` + // glog
	`|` + stampText +
	`|\[?\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?\]?:?` +
	`|\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?:?` +
	`|[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d [\w.-]+ [\w./@-]+(?:\[\d+\])?:` + // syslog
	`|\((?:[\w.:-]+,? )*(?:pid|rank|ip|node|worker)[=:] ?[^()\n]{1,80}\)` + // ray, vLLM
	`|\[[^\[\]\n]{1,60}\](?:<std(?:err|out)>)?:?` + // torchrun, mpirun, vLLM
	`|(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)(?::[\w.]+)?(?:[: ]|$)` +
	`|(?:stdout|stderr) [FP] ` + // kubelet
	`|-(?: [\w.]+ -){1,3}` + // Python's logging: - root - ERROR -
	`|\d{1,4}:[ \t]` + // srun -l
	`|[\w.-]{1,63}[ \t]*\|[ \t]` + // docker compose
	`|\{"log":"` + // docker's json-file
	`)`)

const stampText = `\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?Z|[+-]\d\d:?\d\d)?\]?[:,]?`

// stamp is the commonest prefix by itself, which is found in a fraction of the
// time.
var stamp = regexp.MustCompile(`^[ \t]*` + stampText)

// findPrefix returns the range of the prefix at the beginning of line, nil if there
// is none. A log has many lines, so common cases are decided cheaply.
func findPrefix(line []byte) []int {
	rest := bytes.TrimLeft(line, " \t")
	if len(rest) == 0 {
		return nil
	}
	switch c := rest[0]; {
	case digit(c) || c == '[':
		if loc := stamp.FindIndex(line); loc != nil {
			return loc
		}
	case c >= 'a' && c <= 'z' || c == '_': // a word: only these begin so
		const widest = 128 // of a name before a bar, with the blanks between
		if !bytes.HasPrefix(rest, []byte("std")) && bytes.IndexByte(rest[:min(len(rest), widest)], '|') < 0 {
			return nil
		}
	}
	return prefix.FindIndex(line)
}

// dockerEnd is what docker's json-file driver puts after a line.
var dockerEnd = []byte(`","stream":"std`)

// blankPrefix blanks the prefixes of a line, and what belongs to them at its end.
func blankPrefix(line []byte) {
	const most = 12
	at := 0
	for range most {
		loc := findPrefix(line[at:])
		if loc == nil || bytes.Contains(line[at:at+loc[1]], []byte("[CUDA]")) { // Triton Error [CUDA]
			break
		}
		at = blank(line, at, at+loc[1])
	}
	if i := bytes.LastIndex(line, dockerEnd); i >= 0 && line[len(line)-1] == '}' {
		blank(line, i, len(line))
	}
}

// sharedPrefix returns how much of line repeats how much of head, the text
// before the message on its first line, in shape: runs of digits are equal
// whatever they are. Only whole pieces without sizes count, so that no word of
// the message is taken for one.
func sharedPrefix(head, line []byte) (inHead, inLine int) {
	i, j := 0, 0
	for i < len(head) && j < len(line) {
		switch {
		case digit(head[i]) && digit(line[j]):
			i, j = pastDigits(head, i), pastDigits(line, j)
			continue
		case head[i] != line[j]:
			return inHead, inLine
		}
		i, j = i+1, j+1
		switch head[i-1] {
		case ' ', '\t', ':', ']', ')', '|', '>':
			inHead, inLine = i, j
		case 'B', 'b':
			if i > 1 && bytes.IndexByte([]byte("iKMG "), head[i-2]) >= 0 {
				return 0, 0
			}
		}
	}
	return inHead, inLine
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func pastDigits(b []byte, i int) int {
	for i < len(b) && digit(b[i]) {
		i++
	}
	return i
}
