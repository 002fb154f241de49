package table

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/bits"
	"runtime"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// The numbers of the format that are used here.
const (
	typeInt64, typeBytes     = 2, 6
	optional                 = 1
	utf8Text                 = 0
	plain, rle, byDictionary = 0, 3, 8
	codecGzip                = 2
	dataPage, dictionaryPage = 0, 2
	magic                    = "PAR1"
	rowsOfGroup              = 1 << 16
)

// parquetWriter gathers a group of rows by column and writes it as one page each.
type parquetWriter struct {
	out     io.Writer
	err     error
	at      int64 // bytes written
	columns []chunk
	rows    int   // in this group
	all     int64 // in all
	groups  []group
}

// chunk is a column of the present group.
type chunk struct {
	Column
	known  []bool
	values []byte           // of integers
	words  map[string]int32 // of texts: where they are in the dictionary
	order  []byte           // the dictionary
	index  []int32
	// single says that the texts are all different, such as hashes: they are
	// written as they come, which is what their dictionary would be.
	single bool
}

// singleRows is after how many different texts a column is expected to have no
// other.
const singleRows = 4096

// group is what the end of the file says of a group of rows.
type group struct {
	rows    int
	columns []written
}

// written is where a column of a group is.
type written struct {
	dictionary, data int64 // -1: none
	plain, packed    int64
	end              int64
}

// NewParquet begins a table.
func NewParquet(w io.Writer, columns []Column) Writer {
	p := &parquetWriter{out: w}
	for _, c := range columns {
		p.columns = append(p.columns, chunk{Column: c, words: map[string]int32{}})
	}
	p.write([]byte(magic))
	return p
}

func (p *parquetWriter) write(b []byte) {
	if p.err == nil {
		_, p.err = p.out.Write(b)
		p.at += int64(len(b))
	}
}

func (p *parquetWriter) Row(cells []Cell) {
	for i := range cells {
		p.columns[i].add(&cells[i])
	}
	if p.rows++; p.rows == rowsOfGroup {
		p.flush()
	}
}

func (c *chunk) add(cell *Cell) {
	c.known = append(c.known, cell.known)
	switch {
	case !cell.known:
	case c.single:
		c.values = appendPlain(c.values, cell.text)
	case c.Text:
		at, ok := c.words[cell.text]
		if !ok {
			at = int32(len(c.words))
			c.words[cell.text] = at
			c.order = appendPlain(c.order, cell.text)
		}
		c.index = append(c.index, at)
		if len(c.words) == singleRows && len(c.index) == singleRows {
			c.single, c.values = true, append(c.values, c.order...)
		}
	default:
		c.values = binary.LittleEndian.AppendUint64(c.values, uint64(cell.n))
	}
}

func appendPlain(b []byte, text string) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(text))), text...)
}

// flush writes the group. Its columns are packed at once, as many as there are
// cores.
func (p *parquetWriter) flush() {
	packed := make([]packedColumn, len(p.columns))
	next := make(chan int)
	var all sync.WaitGroup
	for range min(len(p.columns), runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			pack, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is one
			for i := range next {
				packed[i] = p.columns[i].pack(pack, p.rows)
			}
		})
	}
	for i := range p.columns {
		next <- i
	}
	close(next)
	all.Wait()
	g := group{rows: p.rows}
	for i := range packed {
		w := &packed[i].written
		if w.dictionary >= 0 {
			w.dictionary += p.at
		}
		w.data += p.at
		p.write(packed[i].out)
		w.end = p.at
		g.columns = append(g.columns, *w)
		c := &p.columns[i]
		p.columns[i] = chunk{Column: c.Column, words: map[string]int32{}, known: c.known[:0], values: c.values[:0], index: c.index[:0]}
	}
	p.groups = append(p.groups, g)
	p.all += int64(p.rows)
	p.rows = 0
}

// packedColumn is a column of a group, and where its pages are in it.
type packedColumn struct {
	written
	out []byte
}

func (c *chunk) pack(pack *gzip.Writer, rows int) packedColumn {
	p := packedColumn{written: written{dictionary: -1}}
	if c.encoding() == byDictionary {
		p.dictionary = 0
		p.page(pack, c.order, func(t *thrift) {
			t.begin(7)
			t.integer(1, int64(len(c.words)))
			t.integer(2, plain)
			t.end()
		}, dictionaryPage)
	}
	p.data = int64(len(p.out))
	p.page(pack, c.content(), func(t *thrift) {
		t.begin(5)
		t.integer(1, int64(rows))
		t.integer(2, c.encoding())
		t.integer(3, rle)
		t.integer(4, rle)
		t.end()
	}, dataPage)
	p.packed = int64(len(p.out))
	return p
}

// encoding is that of the column's values. A text column without any, or with
// different ones only, has no dictionary.
func (c *chunk) encoding() int64 {
	if c.Text && len(c.words) > 0 && !c.single {
		return byDictionary
	}
	return plain
}

// content is the body of a data page: which values are known, then those.
func (c *chunk) content() []byte {
	levels := make([]int32, len(c.known))
	for i, known := range c.known {
		if known {
			levels[i] = 1
		}
	}
	packed := packedBits(nil, levels, 1)
	out := append(binary.LittleEndian.AppendUint32(nil, uint32(len(packed))), packed...)
	if c.encoding() == plain {
		return append(out, c.values...)
	}
	width := max(bits.Len(uint(len(c.words)-1)), 1)
	return packedBits(append(out, byte(width)), c.index, width)
}

// packedBits appends numbers of some bits each, in one run.
func packedBits(b []byte, numbers []int32, width int) []byte {
	groups := (len(numbers) + 7) / 8
	b = binary.AppendUvarint(b, uint64(groups)<<1|1)
	word, held := uint64(0), 0
	for i := range groups * 8 {
		if i < len(numbers) {
			word |= uint64(numbers[i]) << held
		}
		for held += width; held >= 8; held -= 8 {
			b = append(b, byte(word))
			word >>= 8
		}
	}
	return b
}

// page adds a page.
func (p *packedColumn) page(pack *gzip.Writer, body []byte, header func(t *thrift), kind int64) {
	var packed bytes.Buffer
	pack.Reset(&packed)
	pack.Write(body) // a buffer takes all
	pack.Close()
	t := &thrift{last: []int{0}}
	t.integer(1, kind)
	t.integer(2, int64(len(body)))
	t.integer(3, int64(packed.Len()))
	header(t)
	t.end()
	p.out = append(append(p.out, t.out...), packed.Bytes()...)
	p.plain += int64(len(t.out) + len(body))
}

// Close writes what is left, and the description of the file.
func (p *parquetWriter) Close() error {
	if p.rows > 0 {
		p.flush()
	}
	t := &thrift{last: []int{0}}
	t.integer(1, 1)
	t.list(2, thriftStruct, len(p.columns)+1)
	t.element(func() {
		t.text(4, "events")
		t.integer(5, int64(len(p.columns)))
	})
	for i := range p.columns {
		c := &p.columns[i]
		t.element(func() {
			t.integer(1, c.kind())
			t.integer(3, optional)
			t.text(4, c.Name)
			if c.Text {
				t.integer(6, utf8Text)
			}
		})
	}
	t.wide(3, p.all)
	t.list(4, thriftStruct, len(p.groups))
	for i := range p.groups {
		t.element(func() { p.describe(t, &p.groups[i]) })
	}
	t.text(6, "ashlar")
	t.end()
	p.write(t.out)
	p.write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(t.out))), magic...))
	return p.err
}

func (c *chunk) kind() int64 {
	if c.Text {
		return typeBytes
	}
	return typeInt64
}

// describe writes what the end of the file says of a group.
func (p *parquetWriter) describe(t *thrift, g *group) {
	size := int64(0)
	t.list(1, thriftStruct, len(g.columns))
	for i, w := range g.columns {
		size += w.plain
		t.element(func() {
			t.wide(2, 0)
			t.begin(3)
			t.integer(1, p.columns[i].kind())
			t.list(2, thriftInt, 3)
			for _, e := range []int64{plain, rle, byDictionary} {
				t.out = binary.AppendVarint(t.out, e)
			}
			t.list(3, thriftBytes, 1)
			t.bytes(p.columns[i].Name)
			t.integer(4, codecGzip)
			t.wide(5, int64(g.rows))
			t.wide(6, w.plain)
			t.wide(7, w.packed)
			t.wide(9, w.data)
			if w.dictionary >= 0 {
				t.wide(11, w.dictionary)
			}
			t.end()
		})
	}
	t.wide(2, size)
	t.wide(3, int64(g.rows))
}

// thrift writes Thrift's compact protocol, in which Parquet describes itself.
type thrift struct {
	out  []byte
	last []int // the field written last, of each open struct
}

const (
	thriftInt    = 5
	thriftWide   = 6
	thriftBytes  = 8
	thriftList   = 9
	thriftStruct = 12
)

func (t *thrift) field(id, kind int) {
	top := len(t.last) - 1
	t.out = append(t.out, byte((id-t.last[top])<<4|kind))
	t.last[top] = id
}

func (t *thrift) integer(id int, n int64) {
	t.field(id, thriftInt)
	t.out = binary.AppendVarint(t.out, n)
}

func (t *thrift) wide(id int, n int64) {
	t.field(id, thriftWide)
	t.out = binary.AppendVarint(t.out, n)
}

func (t *thrift) text(id int, s string) {
	t.field(id, thriftBytes)
	t.bytes(s)
}

func (t *thrift) bytes(s string) {
	t.out = append(binary.AppendUvarint(t.out, uint64(len(s))), s...)
}

func (t *thrift) list(id, kind, n int) {
	t.field(id, thriftList)
	if n < 15 {
		t.out = append(t.out, byte(n<<4|kind))
		return
	}
	t.out = binary.AppendUvarint(append(t.out, byte(0xf0|kind)), uint64(n))
}

func (t *thrift) begin(id int) {
	t.field(id, thriftStruct)
	t.last = append(t.last, 0)
}

func (t *thrift) end() {
	t.out = append(t.out, 0)
	t.last = t.last[:len(t.last)-1]
}

// element writes a struct of a list.
func (t *thrift) element(fields func()) {
	t.last = append(t.last, 0)
	fields()
	t.end()
}
