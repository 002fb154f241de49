package watch

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// Gauges are the numbers whose smallest and largest values are kept when rows
// are put together.
var Gauges = [...]int{StepTime, Allocated, Active, Reserved, Requested, InactiveSplit, Pinned, DeviceFree, HostRSS}

// span is a row, or several that were put together: the last values, and the
// extremes of the gauges.
type span struct {
	Row
	low, high [len(Gauges)]int64
}

func single(r Row) span {
	s := span{Row: r}
	for i, g := range Gauges {
		s.low[i], s.high[i] = r.V[g], r.V[g]
	}
	return s
}

// add puts a later span into this one.
func (s *span) add(o *span) {
	s.Row = o.Row
	for i := range Gauges {
		if s.low[i] == unknown || o.low[i] != unknown && o.low[i] < s.low[i] {
			s.low[i] = o.low[i]
		}
		s.high[i] = max(s.high[i], o.high[i])
	}
}

// extremes returns the smallest and largest value of a column.
func (s *span) extremes(column int) (low, high int64) {
	for i, g := range Gauges {
		if g == column {
			return s.low[i], s.high[i]
		}
	}
	return s.V[column], s.V[column]
}

// A block is a head and columns. The head is in front of what is compressed: it
// says what the block covers.
type head struct {
	wide        bool  // has the extremes of the gauges
	first, last int64 // seq
	begin, end  int64 // time_us
}

const (
	blockVersion = 1
	flagWide     = 1
	flagPacked   = 2
	packFrom     = 256 // bytes; less does not shrink
	maxBlock     = 64 << 20
)

var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(64<<10))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlock))
)

// encode makes a block of spans, which are ordered by seq. wide keeps extremes.
func encode(spans []span, wide bool) []byte {
	h := head{wide, spans[0].V[Seq], spans[0].V[Seq], spans[0].V[Time], spans[0].V[Time]}
	for i := range spans {
		v := &spans[i].V
		h.first, h.last = min(h.first, v[Seq]), max(h.last, v[Seq])
		h.begin, h.end = min(h.begin, v[Time]), max(h.end, v[Time])
	}
	var body []byte
	var gpus []int
	byGPU := map[int][]*span{}
	for i := range spans {
		s := &spans[i]
		if byGPU[s.GPU] == nil {
			gpus = append(gpus, s.GPU)
		}
		byGPU[s.GPU] = append(byGPU[s.GPU], s)
	}
	body = binary.AppendUvarint(body, uint64(len(gpus)))
	for _, gpu := range gpus {
		rows := byGPU[gpu]
		body = binary.AppendVarint(body, int64(gpu))
		body = binary.AppendUvarint(body, uint64(len(rows)))
		for c := range columns {
			body = appendColumn(body, rows, func(s *span) int64 { return s.V[c] })
		}
		if wide {
			for g := range Gauges {
				body = appendColumn(body, rows, func(s *span) int64 { return s.low[g] })
				body = appendColumn(body, rows, func(s *span) int64 { return s.high[g] })
			}
		}
	}
	flags := byte(0)
	if wide {
		flags |= flagWide
	}
	if len(body) >= packFrom {
		flags |= flagPacked
		body = packer.EncodeAll(body, nil)
	}
	out := []byte{blockVersion, flags}
	for _, n := range []int64{h.first, h.last - h.first, h.begin, h.end - h.begin} {
		out = binary.AppendUvarint(out, uint64(n))
	}
	return append(out, body...)
}

// appendColumn writes values as the changes of their changes: most are 0.
func appendColumn(out []byte, rows []*span, value func(*span) int64) []byte {
	var last, change int64
	for _, r := range rows {
		v := value(r)
		out = binary.AppendVarint(out, v-last-change)
		change, last = v-last, v
	}
	return out
}

var errBlock = errors.New("a stored block is damaged")

// readHead reads what a block covers, and returns what follows.
func readHead(data []byte) (h head, body []byte, err error) {
	if len(data) < 2 || data[0] != blockVersion {
		return h, nil, errBlock
	}
	h.wide = data[1]&flagWide != 0
	body = data[2:]
	var n [4]int64
	for i := range n {
		u, size := binary.Uvarint(body)
		if size <= 0 || u > maxNumber*2 {
			return h, nil, errBlock
		}
		n[i], body = int64(u), body[size:]
	}
	h.first, h.last, h.begin, h.end = n[0], n[0]+n[1], n[2], n[2]+n[3]
	return h, body, nil
}

// unpackBlock reads what a block covers, and returns its columns.
func unpackBlock(data []byte) (h head, body []byte, err error) {
	if h, body, err = readHead(data); err == nil && data[1]&flagPacked != 0 {
		if body, err = unpacker.DecodeAll(body, nil); err != nil {
			err = fmt.Errorf("%w: %w", errBlock, err)
		}
	}
	return h, body, err
}

// decode reads a block, gpu after gpu.
func decode(data []byte) (head, []span, error) {
	h, body, err := unpackBlock(data)
	if err != nil {
		return h, nil, err
	}
	d := reader{body}
	var spans []span
	for range d.count(1024) {
		gpu, rows := int(d.integer()), d.count(uint64(len(d.left)))
		at := len(spans)
		spans = append(spans, make([]span, rows)...)
		part := spans[at:]
		for i := range part {
			part[i].GPU = gpu
		}
		for c := range columns {
			d.column(part, func(s *span, v int64) { s.V[c] = v })
		}
		for g, c := range Gauges {
			if h.wide {
				d.column(part, func(s *span, v int64) { s.low[g] = v })
				d.column(part, func(s *span, v int64) { s.high[g] = v })
				continue
			}
			for i := range part {
				part[i].low[g], part[i].high[g] = part[i].V[c], part[i].V[c]
			}
		}
	}
	if d.left == nil || len(spans) == 0 {
		return h, nil, errBlock
	}
	return h, spans, nil
}

// reader reads numbers until they end; then left is nil.
type reader struct{ left []byte }

func (d *reader) integer() int64 {
	v, n := binary.Varint(d.left)
	if n <= 0 {
		d.left = nil
		return 0
	}
	d.left = d.left[n:]
	return v
}

func (d *reader) count(most uint64) int {
	v, n := binary.Uvarint(d.left)
	if n <= 0 || v > most {
		d.left = nil
		return 0
	}
	d.left = d.left[n:]
	return int(v)
}

func (d *reader) column(rows []span, set func(*span, int64)) {
	var last, change int64
	for i := range rows {
		change += d.integer()
		last += change
		set(&rows[i], last)
	}
}

// numbers reads a column.
func (d *reader) numbers(rows int) []int64 {
	out := make([]int64, rows)
	var last, change int64
	for i := range out {
		change += d.integer()
		last += change
		out[i] = last
	}
	return out
}

// skip passes over so many numbers.
func (d *reader) skip(n int) {
	for i, c := range d.left {
		if n == 0 {
			d.left = d.left[i:]
			return
		}
		if c < 0x80 { // the last byte of a number
			n--
		}
	}
	if d.left = d.left[len(d.left):]; n > 0 {
		d.left = nil
	}
}
