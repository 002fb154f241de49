package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"

	"github.com/ashlar-mem/ashlar/internal/pickle"
)

// jsonDecoder feeds a machine with JSON. It accepts what Python's json module
// writes, which includes NaN, Infinity and lone surrogates.
type jsonDecoder struct {
	r        io.Reader
	m        *pickle.Machine
	buf      []byte
	pos, end int
	before   int64
	err      error
	limits   Limits
	scratch  []byte
	open     []byte // '{' and '['
}

func newJSONDecoder(r io.Reader, m *pickle.Machine, limits Limits) *jsonDecoder {
	return &jsonDecoder{r: r, m: m, limits: limits, buf: make([]byte, 256<<10)}
}

func (d *jsonDecoder) offset() int64 { return d.before + int64(d.pos) }

// more reads on, keeping the bytes from keep on. It reports whether there was
// anything.
func (d *jsonDecoder) more(keep int) bool {
	if d.err != nil {
		return false
	}
	if keep > 0 {
		d.before += int64(keep)
		copy(d.buf, d.buf[keep:d.end])
		d.end -= keep
		d.pos -= keep
	}
	if d.end == len(d.buf) {
		d.buf = append(d.buf, make([]byte, len(d.buf))...)
	}
	for range 100 {
		n, err := d.r.Read(d.buf[d.end:])
		d.end += n
		d.err = err
		if d.before+int64(d.end) > d.limits.Bytes && err == nil {
			d.err = fmt.Errorf("more than %d bytes", d.limits.Bytes)
			return false
		}
		if n > 0 || err != nil {
			return n > 0
		}
	}
	d.err = io.ErrNoProgress
	return false
}

// ended says why there are no more bytes.
func (d *jsonDecoder) ended() error {
	switch {
	case errors.Is(d.err, io.EOF):
		return &pickle.TruncatedError{Offset: d.before + int64(d.end)}
	case errors.Is(d.err, io.ErrUnexpectedEOF):
		return &pickle.TruncatedError{Offset: d.before + int64(d.end), Err: d.err}
	}
	return d.err
}

// next returns the next byte that is no white space, without taking it.
func (d *jsonDecoder) next() (byte, error) {
	for {
		for d.pos < d.end {
			switch c := d.buf[d.pos]; c {
			case ' ', '\t', '\r', '\n':
				d.pos++
			default:
				return c, nil
			}
		}
		if !d.more(d.pos) {
			return 0, d.ended()
		}
	}
}

func (d *jsonDecoder) decode() (pickle.Value, error) {
	err := d.run()
	var v pickle.Value
	if err == nil {
		v, err = d.m.Result()
	}
	var truncated *pickle.TruncatedError
	var placed *pickle.Error
	if err != nil && err != d.err && !errors.As(err, &truncated) && !errors.As(err, &placed) {
		err = &pickle.Error{Offset: d.offset(), Err: err}
	}
	return v, err
}

// run reads one document. A loop and not a recursion: the machine has the
// stack.
func (d *jsonDecoder) run() error {
	if bytes.HasPrefix(d.buf[:d.end], []byte("\xef\xbb\xbf")) {
		d.pos = 3
	}
	for {
		if err := d.value(); err != nil {
			return err
		}
		for closed := true; closed; {
			if len(d.open) == 0 {
				return nil
			}
			var err error
			if closed, err = d.separator(); err != nil {
				return err
			}
		}
	}
}

// value reads a value, or the beginning of one that has items.
func (d *jsonDecoder) value() error {
	for {
		c, err := d.next()
		if err != nil {
			return err
		}
		switch {
		case c == '{' || c == '[':
			kind := pickle.List
			if c == '{' {
				kind = pickle.Dict
			}
			d.pos++
			if err := d.m.Begin(kind); err != nil {
				return err
			}
			d.open = append(d.open, c)
			c, err := d.next()
			if err != nil {
				return err
			}
			if c == '}' || c == ']' {
				return nil // separator sees it
			}
			if kind == pickle.Dict {
				if err := d.key(); err != nil {
					return err
				}
			}
			continue
		case c == '"':
			return d.text()
		default:
			return d.scalar()
		}
	}
}

// separator reads what stands between two values. It reports whether that was
// the end of a container.
func (d *jsonDecoder) separator() (bool, error) {
	c, err := d.next()
	if err != nil {
		return false, err
	}
	open := d.open[len(d.open)-1]
	switch {
	case c == ',':
		d.pos++
		if open == '{' {
			return false, d.key()
		}
		return false, nil
	case c == '}' && open == '{' || c == ']' && open == '[':
		d.pos++
		d.open = d.open[:len(d.open)-1]
		return true, d.m.End()
	}
	return false, fmt.Errorf("%q where a comma or the end of %q is expected", c, open)
}

// key reads a key and its colon.
func (d *jsonDecoder) key() error {
	c, err := d.next()
	if err != nil {
		return err
	}
	if c != '"' {
		return fmt.Errorf("%q where a key in quotes is expected", c)
	}
	if err := d.text(); err != nil {
		return err
	}
	if c, err = d.next(); err != nil {
		return err
	}
	if c != ':' {
		return fmt.Errorf("%q where a colon is expected", c)
	}
	d.pos++
	return nil
}

// text reads a text at d.pos and pushes it.
func (d *jsonDecoder) text() error {
	start := d.pos // of the quote
	d.pos++
	plain := true
	for {
		if plain {
			i := bytes.IndexByte(d.buf[d.pos:d.end], '"')
			part := d.buf[d.pos:d.end]
			if i >= 0 {
				part = part[:i]
			}
			slash := bytes.IndexByte(part, '\\')
			if slash < 0 {
				d.pos += len(part)
				if i >= 0 {
					break
				}
			} else {
				plain = false
				d.pos += slash
			}
		}
		if !plain && d.escaped() {
			break
		}
		if d.pos-start > d.limits.String {
			return fmt.Errorf("a text of more than %d bytes", d.limits.String)
		}
		if !d.more(start) {
			return d.ended()
		}
		start = 0
	}
	raw := d.buf[start+1 : d.pos]
	d.pos++
	if plain {
		return d.m.PushText(raw)
	}
	var err error
	if d.scratch, err = unescapeJSON(d.scratch[:0], raw); err != nil {
		return err
	}
	return d.m.PushText(d.scratch)
}

// escaped goes to the end of a text with escapes, byte by byte: to look for the quote
// again behind each escape would take time with the square of the length. It reports
// whether the quote is there.
func (d *jsonDecoder) escaped() bool {
	for d.pos < d.end {
		switch d.buf[d.pos] {
		case '"':
			return true
		case '\\':
			if d.pos+1 == d.end { // what is escaped may be a quote
				return false
			}
			d.pos++
		}
		d.pos++
	}
	return false
}

func unescapeJSON(out, raw []byte) ([]byte, error) {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++ // there is a byte, or the text would not have ended
		switch c := raw[i]; c {
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case '"', '\\', '/':
			out = append(out, c)
		case 'u':
			r, ok := hex4(raw[i+1:])
			if !ok {
				return nil, fmt.Errorf("%.10q is no escape in a text", raw[i-1:])
			}
			i += 4
			if r >= 0xD800 && r < 0xDC00 && i+2 < len(raw) && raw[i+1] == '\\' && raw[i+2] == 'u' {
				if low, ok := hex4(raw[i+3:]); ok && low >= 0xDC00 && low < 0xE000 {
					r = 0x10000 + (r-0xD800)<<10 + (low - 0xDC00)
					i += 6
				}
			}
			out = pickle.AppendRune(out, r)
		default:
			return nil, fmt.Errorf("%.10q is no escape in a text", raw[i-1:])
		}
	}
	return out, nil
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[:4]), 16, 16)
	return rune(n), err == nil
}

// scalar reads a number or a word.
func (d *jsonDecoder) scalar() error {
	start := d.pos
	for {
		for d.pos < d.end && isScalar[d.buf[d.pos]] {
			d.pos++
		}
		if d.pos < d.end {
			break
		}
		if d.pos-start > 4096 {
			return fmt.Errorf("a number of more than 4096 digits")
		}
		if !d.more(start) {
			if len(d.open) == 0 && d.pos > start && errors.Is(d.err, io.EOF) {
				start = 0
				break
			}
			return d.ended()
		}
		start = 0
	}
	word := d.buf[start:d.pos]
	if len(word) == 0 {
		return fmt.Errorf("%q where a value is expected", d.buf[d.pos])
	}
	m := d.m
	if n, ok := smallNumber(word); ok {
		return m.Push(m.MakeInt(n))
	}
	switch string(word) {
	case "null":
		return m.Push(pickle.MakeNone())
	case "true":
		return m.Push(pickle.MakeBool(true))
	case "false":
		return m.Push(pickle.MakeBool(false))
	}
	if !bytes.ContainsAny(word, ".eEIN") && len(word) < 2500 {
		if n, ok := new(big.Int).SetString(string(word), 10); ok {
			return m.Push(m.MakeBig(n))
		}
	} else if x, err := strconv.ParseFloat(string(word), 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return m.Push(m.MakeFloat(x))
	}
	return fmt.Errorf("%.40q is no value", word)
}

// smallNumber reads an integer of at most 18 digits.
func smallNumber(word []byte) (int64, bool) {
	digits := word
	if digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		return 0, false
	}
	n := int64(0)
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if len(digits) < len(word) {
		n = -n
	}
	return n, true
}

var isScalar = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '+' || c == '.'
	}
	return t
}()
