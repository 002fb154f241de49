package pickle

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"unicode/utf8"
)

// text reads a text or bytes object of n bytes and pushes it.
func (d *Decoder) text(op byte, n uint64) error {
	if n > uint64(d.machine.limits.String) {
		return &LimitError{fmt.Sprintf("a text of %d bytes is", n), int64(d.machine.limits.String)}
	}
	b, err := d.take(int(n))
	if err != nil {
		return err
	}
	v, err := d.machine.intern(b)
	if err != nil {
		return err
	}
	switch op {
	case opShortBinBytes, opBinBytes, opBinBytes8, opByteArray8:
		v = tagged(tagBytes, uint64(v&payload))
	}
	return d.machine.Push(v)
}

// long reads an integer of n bytes, little-endian in two's complement.
func (d *Decoder) long(n int64) error {
	if n < 0 || n > int64(d.machine.limits.Long) {
		return &LimitError{fmt.Sprintf("an integer of %d bytes is", n), int64(d.machine.limits.Long)}
	}
	b, err := d.take(int(n))
	if err != nil {
		return err
	}
	if n <= 8 {
		x := int64(0)
		for i := len(b) - 1; i >= 0; i-- {
			x = x<<8 | int64(b[i])
		}
		if n > 0 {
			x = x << (64 - 8*n) >> (64 - 8*n)
		}
		return d.machine.Push(d.machine.MakeInt(x))
	}
	reversed := make([]byte, n)
	for i, c := range b {
		reversed[len(b)-1-i] = c
	}
	x := new(big.Int).SetBytes(reversed)
	if reversed[0] >= 0x80 {
		x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
	}
	return d.machine.Push(d.machine.MakeBig(x))
}

// textual executes an opcode of protocol 0 whose argument is a line.
func (d *Decoder) textual(op byte) error {
	line, err := d.line(d.machine.limits.String)
	if err != nil {
		return err
	}
	m := d.machine
	switch op {
	case opGet, opPut:
		i, err := strconv.ParseUint(string(line), 10, 32)
		if err != nil {
			return fmt.Errorf("%q is no memo entry", clip(line))
		}
		if op == opPut {
			return m.memoize(uint(i))
		}
		v, err := m.recall(uint(i))
		if err != nil {
			return err
		}
		return m.Push(v)
	case opInt:
		if string(line) == "00" || string(line) == "01" {
			return m.Push(MakeBool(line[1] == '1'))
		}
		return d.decimal(line)
	case opLong:
		return d.decimal(bytes.TrimSuffix(line, []byte("L")))
	case opFloat:
		x, err := strconv.ParseFloat(string(line), 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return fmt.Errorf("%q is no float", clip(line))
		}
		return m.Push(m.MakeFloat(x))
	case opUnicode:
		line, err = unescapeUnicode(line)
	case opString:
		line, err = unquote(line)
	}
	if err != nil {
		return err
	}
	v, err := m.intern(line)
	if err != nil {
		return err
	}
	return m.Push(v)
}

func (d *Decoder) decimal(line []byte) error {
	if x, err := strconv.ParseInt(string(line), 10, 64); err == nil {
		return d.machine.Push(d.machine.MakeInt(x))
	}
	if limit := d.machine.limits.Long; len(line) > limit*5/2 { // a byte has 2.4 digits
		return &LimitError{fmt.Sprintf("an integer of %d digits is", len(line)), int64(limit * 5 / 2)}
	}
	x, ok := new(big.Int).SetString(string(line), 10)
	if !ok {
		return fmt.Errorf("%q is no integer", clip(line))
	}
	return d.machine.Push(d.machine.MakeBig(x))
}

// clip shortens what an error quotes.
func clip(b []byte) []byte { return b[:min(len(b), 40)] }

// unescapeUnicode reads Python's raw-unicode-escape: Latin-1 with \u and four, or
// \U and eight, hexadecimal digits.
func unescapeUnicode(line []byte) ([]byte, error) {
	out := make([]byte, 0, len(line))
	for i := 0; i < len(line); {
		digits := 0
		if line[i] == '\\' && i+1 < len(line) {
			switch line[i+1] {
			case 'u':
				digits = 4
			case 'U':
				digits = 8
			}
		}
		if digits == 0 {
			out = AppendRune(out, rune(line[i]))
			i++
			continue
		}
		if len(line) < i+2+digits {
			return nil, fmt.Errorf("%q is no escape in a text", clip(line[i:]))
		}
		r, err := strconv.ParseUint(string(line[i+2:i+2+digits]), 16, 32)
		if err != nil || r > utf8.MaxRune {
			return nil, fmt.Errorf("%q is no escape in a text", clip(line[i:]))
		}
		out = AppendRune(out, rune(r))
		i += 2 + digits
	}
	return out, nil
}

// AppendRune is [utf8.AppendRune] that keeps a lone surrogate in the way
// Python's pickler writes it.
func AppendRune(b []byte, r rune) []byte {
	if r >= 0xD800 && r < 0xE000 {
		return append(b, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
	}
	return utf8.AppendRune(b, r)
}

// unquote reads the literal of a Python 2 string.
func unquote(line []byte) ([]byte, error) {
	line = bytes.TrimRight(line, " \t\r")
	n := len(line)
	if n < 2 || line[0] != line[n-1] || line[0] != '\'' && line[0] != '"' {
		return nil, fmt.Errorf("%q is no quoted text", clip(line))
	}
	line = line[1 : n-1]
	if bytes.IndexByte(line, '\\') < 0 {
		return line, nil
	}
	out := make([]byte, 0, len(line))
	for i := 0; i < len(line); i++ {
		if line[i] != '\\' || i+1 == len(line) {
			out = append(out, line[i])
			continue
		}
		i++
		if c, ok := simpleEscapes[line[i]]; ok {
			out = append(out, c)
			continue
		}
		switch c := line[i]; {
		case c == 'x' && i+2 < len(line):
			x, err := strconv.ParseUint(string(line[i+1:i+3]), 16, 8)
			if err != nil {
				return nil, fmt.Errorf("%q is no escape in a text", clip(line[i-1:]))
			}
			out = append(out, byte(x))
			i += 2
		case c >= '0' && c <= '7':
			x := 0
			j := i
			for ; j < len(line) && j < i+3 && line[j] >= '0' && line[j] <= '7'; j++ {
				x = x<<3 | int(line[j]-'0')
			}
			out = append(out, byte(x))
			i = j - 1
		default:
			out = append(out, '\\', c)
		}
	}
	return out, nil
}

var simpleEscapes = map[byte]byte{
	'\\': '\\', '\'': '\'', '"': '"', 'n': '\n', 'r': '\r', 't': '\t', 'a': 7, 'b': 8, 'f': 12, 'v': 11,
}
