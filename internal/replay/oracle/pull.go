package oracle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// puller reads JSON of a known shape value by value. Numbers are read exactly:
// addresses do not survive a float64. A value of another type than asked for
// ends the reading with a panic(*InputError), which decode catches.
type puller struct {
	dec *json.Decoder

	// Where the reader is, for errors: a top-level key and a row in its list,
	// -1 when not in one.
	key string
	row int
}

func newPuller(r io.Reader, max limits) *puller {
	in := &cappedReader{r: r, max: max}
	dec := json.NewDecoder(in)
	dec.UseNumber()
	in.decoded = dec.InputOffset
	return &puller{dec: dec, row: -1}
}

// failf stops the reading.
func (p *puller) failf(format string, args ...any) {
	panic(shapef(p.where(), format, args...))
}

func (p *puller) where() string {
	w := fmt.Sprintf("byte %d", p.dec.InputOffset())
	if p.row >= 0 {
		return fmt.Sprintf("%q row %d (%s)", p.key, p.row, w)
	}
	if p.key != "" {
		return fmt.Sprintf("%q (%s)", p.key, w)
	}
	return w
}

func (p *puller) token() json.Token {
	t, err := p.dec.Token()
	if err == nil {
		return t
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		e := shapef(p.where(), "not valid JSON: %v", err)
		e.Err = err
		panic(e)
	}
	e := readError(err)
	e.Where = p.where()
	panic(e)
}

// delim reads one of the brackets.
func (p *puller) delim(want json.Delim) {
	if t := p.token(); t != want {
		p.failf("expected %s, found %s", delimName(want), describe(t))
	}
}

// list reads a list, one call of f for each element.
func (p *puller) list(f func(i int)) {
	p.delim('[')
	for i := 0; p.dec.More(); i++ {
		if i == maxRows {
			p.failf("the list has more than %d elements", maxRows)
		}
		f(i)
	}
	p.delim(']')
}

// object reads an object; f has to read the value of each key.
func (p *puller) object(f func(key string)) {
	p.delim('{')
	for p.dec.More() {
		f(p.text())
	}
	p.delim('}')
}

// rows reads the list under the current top-level key.
func (p *puller) rows(f func(i int)) {
	p.list(func(i int) {
		p.row = i
		f(i)
	})
	p.row = -1
}

func (p *puller) text() string {
	t := p.token()
	s, ok := t.(string)
	if !ok {
		p.failf("expected a text, found %s", describe(t))
	}
	return s
}

func (p *puller) boolean() bool {
	t := p.token()
	b, ok := t.(bool)
	if !ok {
		p.failf("expected true or false, found %s", describe(t))
	}
	return b
}

func (p *puller) number() json.Number {
	t := p.token()
	n, ok := t.(json.Number)
	if !ok {
		p.failf("expected a number, found %s", describe(t))
	}
	return n
}

func (p *puller) float() float64 {
	n := p.number()
	f, err := n.Float64()
	if err != nil {
		p.failf("the number %s is out of range", n)
	}
	return f
}

// signed reads a whole number of 64 bits with sign.
func (p *puller) signed() int64 {
	n := p.number()
	v, err := strconv.ParseInt(n.String(), 10, 64)
	if err != nil {
		p.failf("expected a whole number of 64 bits, found %s", n)
	}
	return v
}

// unsigned reads a size, address or count.
func (p *puller) unsigned() uint64 {
	n := p.number()
	v, err := strconv.ParseUint(n.String(), 10, 64)
	if err != nil {
		p.failf("expected a whole number of 64 bits that is not negative, found %s", n)
	}
	return v
}

// handle reads a stream handle, which PyTorch writes with or without sign.
func (p *puller) handle() uint64 {
	n := p.number()
	if v, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return uint64(v)
	}
	v, err := strconv.ParseUint(n.String(), 10, 64)
	if err != nil {
		p.failf("expected a whole number of 64 bits, found %s", n)
	}
	return v
}

// index reads a position or count that fits an int32.
func (p *puller) index() int {
	v := p.signed()
	if v < 0 || v > math.MaxInt32 {
		p.failf("expected a position, found %d", v)
	}
	return int(v)
}

// skip reads past a value of any kind.
func (p *puller) skip() {
	depth := 0
	for {
		switch t := p.token(); t {
		case json.Delim('['), json.Delim('{'):
			if depth++; depth > maxDepth {
				p.failf("lists or objects nested more than %d deep", maxDepth)
			}
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
		if depth == 0 {
			return
		}
	}
}

func delimName(d json.Delim) string {
	switch d {
	case '[':
		return "a list"
	case ']':
		return "the end of the list"
	case '{':
		return "an object"
	}
	return "the end of the object"
}

func describe(t json.Token) string {
	switch t := t.(type) {
	case nil:
		return "null"
	case json.Delim:
		return delimName(t)
	case string:
		return fmt.Sprintf("the text %.40q", t)
	case json.Number:
		return fmt.Sprintf("the number %.40s", t)
	}
	return fmt.Sprint(t)
}

// The limits on what is read, so that a small file that unpacks without end,
// or one long value, cannot take all memory.
const (
	MaxBytes = 4 << 30  // bytes of JSON of a recording, after decompression
	maxValue = 64 << 20 // bytes of one text or number
	maxRows  = 1 << 26  // elements of one list
	maxDepth = 1000     // lists in lists
)

// limits are the caps that a reader keeps.
type limits struct {
	bytes, value int64
}

// cappedReader fails once the input is too long, or once it has run so far
// ahead of the decoder that this must be amid one long value. It fills what it is given: after
// each read the decoder looks at all white space before a value again.
type cappedReader struct {
	r       io.Reader
	max     limits
	read    int64
	decoded func() int64 // how far the decoder is
}

func (c *cappedReader) Read(p []byte) (int, error) {
	if c.read-c.decoded() > c.max.value {
		return 0, &sizeError{"one value of the recording", c.max.value}
	}
	most := min(c.max.bytes-c.read, c.max.value-(c.read-c.decoded())) + 1
	n, err := io.ReadFull(c.r, p[:min(int64(len(p)), most)])
	if errors.Is(err, io.ErrUnexpectedEOF) && n > 0 {
		err = nil // what ended it comes again with the next read, if it was no end
	}
	if c.read += int64(n); c.read > c.max.bytes {
		return 0, &sizeError{"the recording", c.max.bytes}
	}
	return n, err
}

// sizeError says what is too large.
type sizeError struct {
	what string
	max  int64
}

func (e *sizeError) Error() string {
	return fmt.Sprintf("%s is larger than %d bytes of JSON", e.what, e.max)
}
