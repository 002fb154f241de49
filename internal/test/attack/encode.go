package attack

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// JSON returns a value as JSON.
func JSON(v any) []byte {
	var b bytes.Buffer
	writeJSON(&b, v)
	return b.Bytes()
}

func writeJSON(b *bytes.Buffer, v any) {
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		fmt.Fprint(b, v)
	case int64, *big.Int:
		fmt.Fprintf(b, "%d", v)
	case float64:
		switch { // as Python writes them
		case math.IsNaN(v):
			b.WriteString("NaN")
		case math.IsInf(v, 0):
			b.WriteString(map[bool]string{true: "Infinity", false: "-Infinity"}[v > 0])
		default:
			b.WriteString(strconv.FormatFloat(v, 'g', -1, 64))
		}
	case string:
		writeText(b, v)
	case *List:
		b.WriteByte('[')
		for i, item := range v.Items {
			if i > 0 {
				b.WriteString(", ")
			}
			writeJSON(b, item)
		}
		b.WriteByte(']')
	case *Dict:
		b.WriteByte('{')
		for i := range v.Keys {
			if i > 0 {
				b.WriteString(", ")
			}
			key, ok := v.Keys[i].(string)
			if !ok {
				key = fmt.Sprint(v.Keys[i])
			}
			writeText(b, key)
			b.WriteString(": ")
			writeJSON(b, v.Values[i])
		}
		b.WriteByte('}')
	}
}

func writeText(b *bytes.Buffer, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}

// MaxProtocol is the last protocol of pickles.
const MaxProtocol = 5

// Pickle returns a value as a pickle of a protocol, with or without a memo.
func Pickle(v any, protocol int, memo bool) []byte {
	p := &pickler{protocol: protocol, memo: memo, texts: map[string]int{}}
	if protocol >= 2 {
		p.out = append(p.out, 0x80, byte(protocol))
	}
	p.value(v)
	return append(p.out, '.')
}

type pickler struct {
	out      []byte
	protocol int
	memo     bool
	texts    map[string]int
	next     int // entry of the memo
}

func (p *pickler) op(s string) { p.out = append(p.out, s...) }

func (p *pickler) value(v any) {
	switch v := v.(type) {
	case nil:
		p.op("N")
	case bool:
		p.bool(v)
	case int64:
		p.int(big.NewInt(v))
	case *big.Int:
		p.int(v)
	case float64:
		if p.protocol == 0 {
			p.op("F" + strings.ToLower(strconv.FormatFloat(v, 'g', -1, 64)) + "\n")
			return
		}
		p.op("G")
		p.out = binary.BigEndian.AppendUint64(p.out, math.Float64bits(v))
	case string:
		p.text(v)
	case *List:
		p.list(v)
	case *Dict:
		p.dict(v)
	}
}

func (p *pickler) bool(x bool) {
	switch {
	case p.protocol >= 2 && x:
		p.op("\x88")
	case p.protocol >= 2:
		p.op("\x89")
	case x:
		p.op("I01\n")
	default:
		p.op("I00\n")
	}
}

func (p *pickler) int(n *big.Int) {
	switch {
	case p.protocol == 0:
		p.op("L" + n.String() + "L\n")
	case n.IsInt64() && n.Int64() >= 0 && n.Int64() < 256:
		p.out = append(p.out, 'K', byte(n.Int64()))
	case n.IsInt64() && n.Int64() >= math.MinInt32 && n.Int64() <= math.MaxInt32:
		p.op("J")
		p.out = binary.LittleEndian.AppendUint32(p.out, uint32(n.Int64()))
	case p.protocol < 2:
		p.op("I" + n.String() + "\n")
	default:
		data := littleEndian(n)
		if len(data) > 255 {
			p.op("\x8b")
			p.out = binary.LittleEndian.AppendUint32(p.out, uint32(len(data)))
		} else {
			p.out = append(p.out, 0x8a, byte(len(data)))
		}
		p.out = append(p.out, data...)
	}
}

// littleEndian is a number in two's complement.
func littleEndian(n *big.Int) []byte {
	size := n.BitLen()/8 + 1
	if n.Sign() < 0 {
		n = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*size)))
	}
	data := n.FillBytes(make([]byte, size))
	for i, j := 0, size-1; i < j; i, j = i+1, j-1 {
		data[i], data[j] = data[j], data[i]
	}
	return data
}

func (p *pickler) text(s string) {
	if at, ok := p.texts[s]; ok && p.memo {
		p.get(at)
		return
	}
	switch {
	case p.protocol == 0:
		p.op("V" + strings.NewReplacer("\\", `\u005c`, "\n", `\u000a`, "\x00", `\u0000`).Replace(s) + "\n")
	case p.protocol >= 4 && len(s) < 256:
		p.out = append(append(p.out, 0x8c, byte(len(s))), s...)
	default:
		p.op("X")
		p.out = append(binary.LittleEndian.AppendUint32(p.out, uint32(len(s))), s...)
	}
	if p.memo {
		p.texts[s] = p.next
		p.put()
	}
}

func (p *pickler) put() {
	switch {
	case p.protocol >= 4:
		p.op("\x94")
	case p.protocol == 0:
		p.op("p" + strconv.Itoa(p.next) + "\n")
	default:
		p.op("r")
		p.out = binary.LittleEndian.AppendUint32(p.out, uint32(p.next))
	}
	p.next++
}

func (p *pickler) get(at int) {
	if p.protocol == 0 {
		p.op("g" + strconv.Itoa(at) + "\n")
		return
	}
	p.op("j")
	p.out = binary.LittleEndian.AppendUint32(p.out, uint32(at))
}

func (p *pickler) list(l *List) {
	if l.Tuple && p.protocol > 0 {
		p.op("(")
		for _, v := range l.Items {
			p.value(v)
		}
		p.op("t")
		return
	}
	if p.protocol == 0 {
		p.op("(l")
		for _, v := range l.Items {
			p.value(v)
			p.op("a")
		}
		return
	}
	const batch = 1000 // as Python writes them
	p.op("]")
	for from := 0; from < len(l.Items); from += batch {
		p.op("(")
		for _, v := range l.Items[from:min(from+batch, len(l.Items))] {
			p.value(v)
		}
		p.op("e")
	}
}

func (p *pickler) dict(d *Dict) {
	if p.protocol == 0 {
		p.op("(d")
		for i := range d.Keys {
			p.value(d.Keys[i])
			p.value(d.Values[i])
			p.op("s")
		}
		return
	}
	p.op("}(")
	for i := range d.Keys {
		p.value(d.Keys[i])
		p.value(d.Values[i])
	}
	p.op("u")
}
