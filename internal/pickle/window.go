package pickle

import (
	"bytes"
	"errors"
	"io"
)

// windowSize is how much is read at a time.
const windowSize = 256 << 10

// window is the part of the file that is in memory.
type window struct {
	r      io.Reader
	buf    []byte
	pos    int   // next byte
	end    int   // of what was read
	before int64 // bytes of the file before buf
	limit  int64
	err    error // of the reader; io.EOF at the end
}

func newWindow(r io.Reader, limit int64) window {
	return window{r: r, buf: make([]byte, windowSize), limit: limit}
}

// offset is the place of the next byte in the file.
func (w *window) offset() int64 { return w.before + int64(w.pos) }

// fill reads on until n bytes are there or the file ends. It reports whether
// they are.
func (w *window) fill(n int) bool {
	if w.end-w.pos >= n {
		return true
	}
	if w.pos > 0 {
		w.before += int64(w.pos)
		copy(w.buf, w.buf[w.pos:w.end])
		w.end -= w.pos
		w.pos = 0
	}
	for idle := 0; w.end < n && w.err == nil; {
		if w.end == len(w.buf) { // grows with what really comes
			w.buf = append(w.buf, make([]byte, len(w.buf))...)
		}
		var got int
		got, w.err = w.r.Read(w.buf[w.end:])
		w.end += got
		if got > 0 {
			idle = 0
		} else if idle++; idle > 100 && w.err == nil {
			w.err = io.ErrNoProgress
		}
		if w.before+int64(w.end) > w.limit && w.err == nil {
			w.err = &LimitError{"the size in bytes is", w.limit}
		}
	}
	return w.end-w.pos >= n
}

// take returns the next n bytes. They are lent until the next call.
func (w *window) take(n int) ([]byte, error) {
	if !w.fill(n) {
		return nil, w.ended()
	}
	w.pos += n
	return w.buf[w.pos-n : w.pos], nil
}

// line returns the bytes before the next line feed, which it skips. They are
// lent until the next call.
func (w *window) line(limit int) ([]byte, error) {
	for seen := 0; ; {
		if i := bytes.IndexByte(w.buf[w.pos+seen:w.end], '\n'); i >= 0 {
			b, err := w.take(seen + i + 1)
			return b[:max(0, len(b)-1)], err
		}
		seen = w.end - w.pos
		if seen > limit {
			return nil, &LimitError{"bytes of one text", int64(limit)}
		}
		if !w.fill(seen + 1) {
			return nil, w.ended()
		}
	}
}

// ended says why there are no more bytes.
func (w *window) ended() error {
	offset := w.before + int64(w.end)
	switch {
	case w.err == nil || errors.Is(w.err, io.EOF):
		return &TruncatedError{Offset: offset}
	case errors.Is(w.err, io.ErrUnexpectedEOF):
		return &TruncatedError{Offset: offset, Err: w.err}
	}
	return w.err
}
