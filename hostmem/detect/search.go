package detect

import (
	"bytes"
	"errors"
	"io"
)

const (
	searchChunk = 4 << 20
	searchMost  = 2 << 30 // of one object
)

// window is a place where a text was found: the bytes around it.
type window struct {
	before, after []byte // after begins with the text
}

// around calls f for every place of a text in the object, with up to reach
// bytes on both sides, until f returns true.
func (o *object) around(text string, reach int, f func(w window) bool) {
	want := []byte(text)
	overlap := 2*reach + len(want)
	for _, s := range o.content() {
		buf := make([]byte, min(s.size, searchChunk)+uint64(overlap))
		for done := uint64(0); done < min(s.size, searchMost); done += searchChunk {
			n, err := s.r.ReadAt(buf[:min(uint64(len(buf)), s.size-done)], int64(s.at+done))
			if err != nil && !errors.Is(err, io.EOF) && n == 0 {
				break
			}
			if searchIn(buf[:n], want, reach, done > 0, done+searchChunk < s.size, f) {
				return
			}
		}
	}
}

// searchIn looks through one chunk. Chunks overlap, so that every text lies far
// enough from the ends of one of them; it is reported by that one alone.
func searchIn(chunk, want []byte, reach int, notFirst, notLast bool, f func(w window) bool) bool {
	for at := 0; ; {
		i := bytes.Index(chunk[at:], want)
		if i < 0 {
			return false
		}
		at += i
		if !(notFirst && at < reach) && !(notLast && at >= searchChunk+reach) {
			if f(window{chunk[max(0, at-reach):at], chunk[at:min(len(chunk), at+len(want)+reach)]}) {
				return true
			}
		}
		at++
	}
}

// has tells whether the object has a text anywhere.
func (o *object) has(text string) bool {
	found := false
	o.around(text, 0, func(window) bool { found = true; return true })
	return found
}
