package dry

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
)

// maxLine is the length of the longest line that is read: an op over all tensors
// of a large model names each.
const maxLine = 16 << 20

var errLongLine = errors.New("the line is longer than 16 MiB: the file is no ledger of a dry run")

// lines reads a file line by line.
type lines struct {
	from *bufio.Reader
	long []byte // a line that is longer than the buffer
	n    int    // of the last line, from 1 on
}

// next returns the next line without its end. whole is false for a last line that
// does not end: the file may be cut there. The line is valid until the next call.
func (l *lines) next() (line []byte, whole bool, err error) {
	line, err = l.from.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		l.long = append(l.long[:0], line...)
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = l.from.ReadSlice('\n')
			if l.long = append(l.long, line...); len(l.long) > maxLine {
				return nil, false, errLongLine
			}
		}
		line = l.long
	}
	if len(line) == 0 && err != nil {
		return nil, false, err
	}
	l.n++
	if err != nil && !errors.Is(err, io.EOF) {
		return line, false, err
	}
	whole = err == nil
	return bytes.TrimRight(line, "\r\n"), whole, nil
}

// cursor reads the numbers of a line by hand. Most lines are calls, births and
// deaths, and reading them is most of the work.
type cursor struct {
	rest []byte
	bad  bool
}

func (c *cursor) space() {
	for len(c.rest) > 0 && (c.rest[0] == ' ' || c.rest[0] == '\t') {
		c.rest = c.rest[1:]
	}
}

// take takes a character, with the space before it.
func (c *cursor) take(want byte) {
	if !c.has(want) {
		c.bad = true
	}
}

// has takes a character if it is next.
func (c *cursor) has(want byte) bool {
	c.space()
	if len(c.rest) == 0 || c.rest[0] != want {
		return false
	}
	c.rest = c.rest[1:]
	return true
}

// number takes a whole number.
func (c *cursor) number() int64 {
	c.space()
	negative := len(c.rest) > 0 && c.rest[0] == '-'
	if negative {
		c.rest = c.rest[1:]
	}
	var n int64
	i := 0
	for ; i < len(c.rest) && c.rest[i] >= '0' && c.rest[i] <= '9'; i++ {
		if i == 18 { // more than any number of bytes
			c.bad = true
			return 0
		}
		n = 10*n + int64(c.rest[i]-'0')
	}
	if i == 0 {
		c.bad = true
	}
	c.rest = c.rest[i:]
	if negative {
		return -n
	}
	return n
}

// next takes a comma and a whole number.
func (c *cursor) next() int64 {
	c.take(',')
	return c.number()
}

// list takes a comma and an array of whole numbers, and appends them.
func (c *cursor) list(to []int64) []int64 {
	c.take(',')
	c.take('[')
	if c.bad || c.has(']') {
		return to
	}
	for !c.bad {
		to = append(to, c.number())
		if c.has(']') {
			return to
		}
		c.take(',')
	}
	return to
}

// text takes a comma and a string without escapes.
func (c *cursor) text() string {
	c.take(',')
	c.take('"')
	end := bytes.IndexByte(c.rest, '"')
	if c.bad || end < 0 || bytes.IndexByte(c.rest[:end], '\\') >= 0 {
		c.bad = true
		return ""
	}
	s := c.rest[:end]
	c.rest = c.rest[end+1:]
	return string(s)
}

// end takes the end of the line.
func (c *cursor) end() bool {
	c.take(']')
	c.space()
	return !c.bad && len(c.rest) == 0
}

// letter takes the beginning of a line up to its kind, a single letter.
func (c *cursor) letter() byte {
	c.take('[')
	c.space()
	if len(c.rest) < 3 || c.rest[0] != '"' || c.rest[2] != '"' {
		c.bad = true
		return 0
	}
	b := c.rest[1]
	c.rest = c.rest[3:]
	return b
}

// quoted shows the beginning of a line in an error.
func quoted(line []byte) string {
	const most = 60
	if len(line) > most {
		return strconv.Quote(string(line[:most])) + "..."
	}
	return strconv.Quote(string(line))
}
