package snapshot

import (
	"fmt"
	"strconv"

	"github.com/ashlar-mem/ashlar/internal/pickle"
	"github.com/ashlar-mem/ashlar/trace"
)

// extra adds a field that has no place of its own.
func (b *builder) extra(fields trace.Extra, key, v pickle.Value) (trace.Extra, error) {
	value, err := b.expand(v, 0)
	if err != nil {
		return nil, err
	}
	return set(fields, b.keyText(key), value), nil
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
	if n, ok := b.m.Big(key); ok {
		return n.String()
	}
	if x, ok := b.m.Float(key); ok {
		return formatFloat(x)
	}
	if x, ok := key.AsBool(); ok {
		return strconv.FormatBool(x)
	}
	if key.IsNone() {
		return "null"
	}
	return fmt.Sprintf("(%v)", b.m.KindOf(key))
}

// expand turns a value into one that trace.Extra can hold.
func (b *builder) expand(v pickle.Value, depth int) (any, error) {
	if err := b.spend(1); err != nil {
		return nil, err
	}
	if depth > b.limits.Depth {
		return nil, fmt.Errorf("more than %d containers inside each other", b.limits.Depth)
	}
	m := b.m
	switch m.KindOf(v) {
	case pickle.Bool:
		x, _ := v.AsBool()
		return x, nil
	case pickle.Int:
		if n, ok := m.Int(v); ok {
			return n, nil
		}
		if n, ok := m.Bits(v); ok {
			return n, nil
		}
		n, _ := m.Big(v)
		return n, nil
	case pickle.Float:
		x, _ := m.Float(v)
		return x, nil
	case pickle.String:
		id, _ := v.AsString()
		return b.Text(id), nil
	case pickle.Bytes:
		id, _ := v.AsBytes()
		return b.Text(id), nil
	case pickle.List, pickle.Tuple:
		list := trace.List{}
		for _, item := range m.Items(v) {
			if rec, first, n, ok := item.AsRun(); ok {
				for i := range n {
					x, err := b.expandRecord(rec, first+i, depth+1)
					if err != nil {
						return nil, err
					}
					list = append(list, x)
				}
				continue
			}
			x, err := b.expand(item, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, x)
		}
		return list, nil
	case pickle.Dict:
		return b.expandDict(m.Items(v), depth)
	case pickle.Record:
		if rec, i, ok := v.AsRecord(); ok {
			return b.expandRecord(rec, i, depth)
		}
	}
	return nil, nil
}

func (b *builder) expandDict(pairs []pickle.Value, depth int) (trace.Extra, error) {
	dict := make(trace.Extra, 0, len(pairs)/2)
	var at map[string]int // where a name is, in large dictionaries
	for i := 0; i < len(pairs); i += 2 {
		x, err := b.expand(pairs[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		name := b.keyText(pairs[i])
		if len(pairs) <= 64 {
			dict = set(dict, name, x)
			continue
		}
		if at == nil {
			at = map[string]int{}
		}
		if j, ok := at[name]; ok {
			dict[j].Value = x
			continue
		}
		at[name] = len(dict)
		dict = append(dict, trace.Field{Name: name, Value: x})
	}
	return dict, nil
}

// expandRecord is the way back from a row, for a known thing in a place where
// none is expected.
func (b *builder) expandRecord(rec uint8, i, depth int) (any, error) {
	if rec == recPair {
		pair := b.pairs.at(i)
		first, _ := pair[0].AsInt()
		second, _ := pair[1].AsInt()
		return trace.List{first, second}, b.spend(2)
	}
	e := &treeEncoder{limit: b.limits.Extra - b.expanded, depth: depth, max: b.limits.Depth}
	w := walker{encoder: e, strings: b.strings, stacks: b.stacks}
	switch rec {
	case recEvent:
		w.event(&b.events, i)
	case recFrame:
		w.frame(trace.FrameID(i))
	case recStack:
		w.stack(trace.StackID(i))
	case recSegment:
		row := b.segments.at(i)
		w.segment(row.device, &row.Segment)
	case recBlock:
		w.block(b.blocks.at(i))
	case recUse:
		w.use(b.uses.at(i))
	case recAnnotation:
		w.annotation(b.annotations.at(i))
	}
	if e.err != nil {
		return nil, e.err
	}
	return e.result, b.spend(e.count)
}
