package snapshot

import (
	"fmt"
	"strconv"

	"github.com/ashlar-mem/ashlar/internal/pickle"
	"github.com/ashlar-mem/ashlar/trace"
)

// extra adds a field that has no place of its own.
func (b *builder) extra(fields trace.Extra, key, v pickle.Value) (trace.Extra, error) {
	x, err := b.expand(v, 0)
	if err != nil {
		return nil, err
	}
	return set(fields, b.keyText(key), x.value), nil
}

// set changes a field or adds it, as Python's dictionaries do.
func set(fields trace.Extra, name string, value any) trace.Extra {
	for i := range fields {
		if fields[i].Name == name {
			fields[i].Value = value
			return fields
		}
	}
	return append(fields, trace.Field{Name: name, Value: value})
}

// keyText returns a key as text. Keys that are no texts are written as Python's
// json module does.
func (b *builder) keyText(key pickle.Value) string {
	if id, ok := key.AsString(); ok {
		return b.Text(id)
	}
	if n, ok := b.machine.Big(key); ok {
		return n.String()
	}
	if x, ok := b.machine.Float(key); ok {
		return formatFloat(x)
	}
	if x, ok := key.AsBool(); ok {
		return strconv.FormatBool(x)
	}
	if key.IsNone() {
		return "null"
	}
	return fmt.Sprintf("(%v)", b.machine.KindOf(key))
}

// expanded is a value that trace.Extra can hold, with the number of values in
// it.
type expanded struct {
	value any
	size  int
}

// Values from minShared on are made once however often a file names them, and
// maxShared is the largest: few bytes can name very much.
const (
	minShared = 8
	maxShared = 1 << 20
)

// expand turns a value into one that trace.Extra can hold.
func (b *builder) expand(v pickle.Value, depth int) (expanded, error) {
	if x, ok := b.shared[v]; ok {
		return x, nil
	}
	if depth > b.limits.Depth {
		return expanded{}, fmt.Errorf("more than %d containers inside each other", b.limits.Depth)
	}
	x, err := b.expandNew(v, depth)
	if err != nil {
		return expanded{}, err
	}
	if x.size > maxShared {
		return expanded{}, b.tooMuch()
	}
	if x.size >= minShared {
		b.shared[v] = x
	}
	return x, nil
}

func (b *builder) expandNew(v pickle.Value, depth int) (expanded, error) {
	if err := b.spend(1); err != nil {
		return expanded{}, err
	}
	one := func(value any) (expanded, error) { return expanded{value, 1}, nil }
	m := b.machine
	switch m.KindOf(v) {
	case pickle.Bool:
		x, _ := v.AsBool()
		return one(x)
	case pickle.Int:
		if n, ok := m.Int(v); ok {
			return one(n)
		}
		if n, ok := m.Bits(v); ok {
			return one(n)
		}
		n, _ := m.Big(v)
		return one(n)
	case pickle.Float:
		x, _ := m.Float(v)
		return one(x)
	case pickle.String:
		id, _ := v.AsString()
		return one(b.Text(id))
	case pickle.Bytes:
		id, _ := v.AsBytes()
		return one(b.Text(id))
	case pickle.List, pickle.Tuple:
		return b.expandList(m.Items(v), depth)
	case pickle.Dict:
		return b.expandDict(m.Items(v), depth)
	case pickle.Record:
		if rec, i, ok := v.AsRecord(); ok {
			return b.expandRecord(rec, i, depth)
		}
	}
	return one(nil)
}

func (b *builder) expandList(items []pickle.Value, depth int) (expanded, error) {
	list := trace.List{}
	size := 1
	for _, item := range items {
		count := 1
		rec, first, n, isRun := item.AsRun()
		if isRun {
			count = n
		}
		for i := range count {
			var x expanded
			var err error
			if isRun {
				x, err = b.expand(pickle.MakeRecord(rec, first+i), depth+1)
			} else {
				x, err = b.expand(item, depth+1)
			}
			if size += x.size; err == nil && size > maxShared {
				err = b.tooMuch()
			}
			if err != nil {
				return expanded{}, err
			}
			list = append(list, x.value)
		}
	}
	return expanded{list, size}, nil
}

func (b *builder) expandDict(pairs []pickle.Value, depth int) (expanded, error) {
	dict := make(trace.Extra, 0, len(pairs)/2)
	var at map[string]int // where a name is, in large dictionaries
	if len(pairs) > 64 {
		at = map[string]int{}
	}
	size := 1
	for i := 0; i < len(pairs); i += 2 {
		x, err := b.expand(pairs[i+1], depth+1)
		if size += x.size; err == nil && size > maxShared {
			err = b.tooMuch()
		}
		if err != nil {
			return expanded{}, err
		}
		name := b.keyText(pairs[i])
		if at == nil {
			dict = set(dict, name, x.value)
			continue
		}
		if j, ok := at[name]; ok {
			dict[j].Value = x.value
			continue
		}
		at[name] = len(dict)
		dict = append(dict, trace.Field{Name: name, Value: x.value})
	}
	return expanded{dict, size}, nil
}

// expandRecord is the way back from a row, for a known thing in a place where
// none is expected.
func (b *builder) expandRecord(rec uint8, i, depth int) (expanded, error) {
	if rec == recPair {
		pair := b.pairs.row(i)
		first, _ := pair[0].AsInt()
		second, _ := pair[1].AsInt()
		return expanded{trace.List{first, second}, 3}, b.spend(2)
	}
	e := &treeEncoder{limit: min(maxShared, b.limits.Extra-b.expanded), tooMuch: b.tooMuch(), depth: depth, max: b.limits.Depth}
	w := walker{encoder: e, strings: b.strings, stacks: b.stacks}
	switch rec {
	case recEvent:
		w.event(&b.events, i)
	case recFrame:
		w.frame(trace.FrameID(i))
	case recStack:
		w.stack(trace.StackID(i))
	case recSegment:
		row := b.segments.row(i)
		w.segment(row.device, &row.Segment)
	case recBlock:
		w.block(b.blocks.row(i))
	case recUse:
		w.use(b.uses.row(i))
	case recAnnotation:
		w.annotation(b.annotations.row(i))
	}
	if e.err != nil {
		return expanded{}, e.err
	}
	return expanded{e.result, e.count}, b.spend(e.count)
}
