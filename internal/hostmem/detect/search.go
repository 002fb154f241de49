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
	for _, s := range o.content() {
		stop := s.chunks(2*reach+len(want), func(chunk []byte, first, last bool) bool {
			return searchIn(chunk, want, reach, first, last, f)
		})
		if stop {
			return
		}
	}
}

// chunks reads a section in pieces, each with some bytes of the next, until f
// returns true.
func (s section) chunks(overlap int, f func(chunk []byte, first, last bool) bool) bool {
	size := min(s.size, searchMost)
	buf := make([]byte, min(size, searchChunk+uint64(overlap)))
	for done := uint64(0); done < size; done += searchChunk {
		n, err := s.r.ReadAt(buf[:min(uint64(len(buf)), size-done)], int64(s.at+done))
		if err != nil && !errors.Is(err, io.EOF) && n == 0 {
			return false
		}
		if f(buf[:n], done == 0, done+searchChunk >= size) {
			return true
		}
	}
	return false
}

// searchIn looks through one chunk. Chunks overlap, so that every text lies far
// enough from the ends of one of them; it is reported by that one alone.
func searchIn(chunk, want []byte, reach int, first, last bool, f func(w window) bool) bool {
	for at := 0; ; {
		i := bytes.Index(chunk[at:], want)
		if i < 0 {
			return false
		}
		at += i
		if (first || at >= reach) && (last || at < searchChunk+reach) {
			if f(window{chunk[max(0, at-reach):at], chunk[at:min(len(chunk), at+len(want)+reach)]}) {
				return true
			}
		}
		at++
	}
}

// has reports whether the object contains a text.
func (o *object) has(text string) bool { return len(o.which(text)) > 0 }

// which returns those of some texts that the object contains, in one pass.
func (o *object) which(texts ...string) []string {
	found := make([]bool, len(texts))
	longest := 0
	for _, t := range texts {
		longest = max(longest, len(t))
	}
	for _, s := range o.content() {
		s.chunks(longest, func(chunk []byte, _, _ bool) bool {
			all := true
			for i, t := range texts {
				found[i] = found[i] || bytes.Contains(chunk, []byte(t))
				all = all && found[i]
			}
			return all
		})
	}
	var has []string
	for i, t := range texts {
		if found[i] {
			has = append(has, t)
		}
	}
	return has
}
