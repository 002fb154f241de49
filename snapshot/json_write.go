package snapshot

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"unicode/utf8"

	"github.com/ashlar-mem/ashlar/trace"
)

// jsonEncoder writes JSON without white space. Frames come very often, so
// their text is kept.
type jsonEncoder struct {
	w      io.Writer
	err    error
	buf    []byte
	first  bool // no comma is due
	tables map[*trace.Stacks]*[][]byte
	frames *[][]byte

	// The frame being written: its number, where it begins in buf, and how
	// many dictionaries are open in it.
	capture      uint32
	captureStart int
	captureDepth int
}

func newJSONEncoder(w io.Writer) *jsonEncoder {
	return &jsonEncoder{w: w, first: true, tables: map[*trace.Stacks]*[][]byte{}}
}

func (e *jsonEncoder) failed() bool { return e.err != nil }

func (e *jsonEncoder) close() error {
	e.buf = append(e.buf, '\n')
	e.flush()
	return e.err
}

func (e *jsonEncoder) flush() {
	if e.err == nil {
		_, e.err = e.w.Write(e.buf)
	}
	e.buf = e.buf[:0]
}

// item is called before each value and key.
func (e *jsonEncoder) item() {
	if len(e.buf) >= 1<<16 && e.captureDepth == 0 {
		e.flush()
	}
	if !e.first {
		e.buf = append(e.buf, ',')
	}
	e.first = false
}

func (e *jsonEncoder) beginDict() {
	e.item()
	e.buf = append(e.buf, '{')
	e.first = true
	if e.captureDepth > 0 {
		e.captureDepth++
	}
}

func (e *jsonEncoder) endDict() {
	e.buf = append(e.buf, '}')
	e.first = false
	if e.captureDepth > 0 {
		if e.captureDepth--; e.captureDepth == 0 {
			(*e.frames)[e.capture] = bytes.Clone(e.buf[e.captureStart:])
		}
	}
}

func (e *jsonEncoder) beginList() {
	e.item()
	e.buf = append(e.buf, '[')
	e.first = true
}

func (e *jsonEncoder) endList() {
	e.buf = append(e.buf, ']')
	e.first = false
}

func (e *jsonEncoder) use(s *trace.Stacks) {
	if e.frames = e.tables[s]; e.frames == nil {
		e.frames = &[][]byte{}
		e.tables[s] = e.frames
	}
}

func (e *jsonEncoder) beginShared(s shared) bool {
	if s.rec == recStack {
		e.beginList()
		return true
	}
	e.item()
	if n := int(s.id) + 1 - len(*e.frames); n > 0 {
		*e.frames = append(*e.frames, make([][]byte, n)...)
	}
	if text := (*e.frames)[s.id]; text != nil {
		e.buf = append(e.buf, text...)
		return false
	}
	e.capture, e.captureStart, e.captureDepth = s.id, len(e.buf), 1
	e.buf = append(e.buf, '{')
	e.first = true
	return true
}

func (e *jsonEncoder) key(name string) {
	e.text(name)
	e.buf = append(e.buf, ':')
	e.first = true
}

func (e *jsonEncoder) text(s string) {
	e.item()
	e.buf = appendQuoted(e.buf, s)
}

func (e *jsonEncoder) int(n int64) {
	e.item()
	e.buf = strconv.AppendInt(e.buf, n, 10)
}

func (e *jsonEncoder) bool(x bool) {
	e.item()
	e.buf = strconv.AppendBool(e.buf, x)
}

func (e *jsonEncoder) pair(first, second int64) {
	e.beginList()
	e.int(first)
	e.int(second)
	e.endList()
}

func (e *jsonEncoder) other(v any) {
	e.item()
	switch v := v.(type) {
	case nil:
		e.buf = append(e.buf, "null"...)
	case float64:
		e.buf = appendFloat(e.buf, v)
	case uint64:
		e.buf = strconv.AppendUint(e.buf, v, 10)
	case *big.Int:
		e.buf = v.Append(e.buf, 10)
	default:
		if e.err == nil {
			e.err = fmt.Errorf("a field holds a %T, which no snapshot can", v)
		}
		e.buf = append(e.buf, "null"...)
	}
}

// appendQuoted writes a text. Lone surrogates are escaped as Python's json
// module does; bytes that are no text become U+FFFD.
func appendQuoted(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, s[start:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			case '\r':
				b = append(b, '\\', 'r')
			case '\t':
				b = append(b, '\\', 't')
			default:
				b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r != utf8.RuneError || size > 1 {
			i += size
			continue
		}
		b = append(b, s[start:i]...)
		if i+2 < len(s) && c == 0xED && s[i+1]&0xE0 == 0xA0 && s[i+2]&0xC0 == 0x80 {
			r = rune(c&0xF)<<12 | rune(s[i+1]&0x3F)<<6 | rune(s[i+2]&0x3F)
			b = append(b, '\\', 'u', hex[r>>12], hex[r>>8&15], hex[r>>4&15], hex[r&15])
			i += 3
		} else {
			b = append(b, "\uFFFD"...)
			i++
		}
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

// appendFloat writes a float as Python's repr and json module do.
func appendFloat(b []byte, x float64) []byte {
	switch {
	case math.IsNaN(x):
		return append(b, "NaN"...)
	case math.IsInf(x, 1):
		return append(b, "Infinity"...)
	case math.IsInf(x, -1):
		return append(b, "-Infinity"...)
	}
	format := byte('f')
	if abs := math.Abs(x); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		format = 'e'
	}
	n := len(b)
	b = strconv.AppendFloat(b, x, format, -1, 64)
	if !bytes.ContainsAny(b[n:], ".e") {
		b = append(b, ".0"...)
	}
	return b
}

// formatFloat is appendFloat for a text.
func formatFloat(x float64) string { return string(appendFloat(nil, x)) }
