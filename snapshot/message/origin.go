package message

import (
	"regexp"
	"strconv"
	"time"
)

// origin is what the prefix of a line says about the process that wrote it.
type origin struct {
	rank int // -1 if it does not say
	pid  int // 0 if it does not say
	time time.Time
}

// same reports whether two lines can be of one process.
func (o origin) same(other origin) bool { return o.rank == other.rank && o.pid == other.pid }

// ranks are how launchers number the processes in front of their lines:
// PyTorch's [rank3]:, torchrun's [default3]:, vLLM's rank=3, srun's 3:, mpirun's
// [1,3]<stderr>:.
var (
	rankWord   = regexp.MustCompile(`(?i)\brank[ =:]?(\d{1,5})\b`)
	rankRole   = regexp.MustCompile(`^\s*\[(?:default|trainer|worker)_?(\d{1,5})\]:`)
	rankSrun   = regexp.MustCompile(`^\s*(\d{1,4}):[ \t]`)
	rankMPI    = regexp.MustCompile(`^\s*\[\d+,(\d{1,5})\](?:<std(?:err|out)>)?:?`)
	pidWord    = regexp.MustCompile(`\bpid[=:] ?(\d{1,9})\b`)
	stampParts = regexp.MustCompile(`(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?`)
)

// prefixOf returns where the prefix of a line ends, with one blank after it, and
// what it says. Text that is indented is no prefix: it may be a line of source.
func prefixOf(line []byte) (end int, o origin) {
	const most = 12
	for range most {
		loc := findPrefix(line[end:])
		if loc == nil || indent(line[end:]) > 1 {
			break
		}
		end += loc[1]
	}
	head := line[:end]
	if end > 0 && end < len(line) && line[end] == ' ' && line[end-1] != ' ' && line[end-1] != '\t' {
		end++
	}
	by := processIn(head)
	o.rank, o.pid = by.rank, by.pid
	if m := stampParts.FindSubmatch(head); m != nil {
		text := string(m[1]) + "-" + string(m[2]) + "-" + string(m[3]) + " " + string(m[4])
		if len(m[5]) > 0 {
			text += "." + string(m[5])
		}
		o.time, _ = time.Parse("2006-01-02 15:04:05", text)
	}
	return end, o
}

// processIn returns what a prefix says about the process.
func processIn(head []byte) process {
	p := nobody
	for _, pattern := range []*regexp.Regexp{rankWord, rankRole, rankMPI, rankSrun} {
		if m := pattern.FindSubmatch(head); m != nil {
			p.rank, _ = strconv.Atoi(string(m[1]))
			break
		}
	}
	if m := pidWord.FindSubmatch(head); m != nil {
		p.pid, _ = strconv.Atoi(string(m[1]))
	}
	return p
}

func indent(line []byte) int {
	n := 0
	for n < len(line) && (line[n] == ' ' || line[n] == '\t') {
		n++
	}
	return n
}
