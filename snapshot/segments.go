package snapshot

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/pickle"
	"github.com/ashlar-mem/ashlar/trace"
)

func (b *builder) segment(s *shape, pairs []pickle.Value) (pickle.Value, error) {
	var row segmentRow
	seg := &row.Segment
	var err error
	for i, key := range s.ids {
		if key == keySkip {
			continue
		}
		v := pairs[2*i+1]
		ok := true
		switch key {
		case keyDevice:
			var n uint64
			n, err = b.bits(recSegment, key, v)
			row.device = int(int64(n))
		case keyAddress:
			seg.Address, err = b.bits(recSegment, key, v)
		case keyTotalSize:
			seg.TotalSize, err = b.size(recSegment, key, v)
		case keyAllocatedSize:
			seg.AllocatedSize, err = b.size(recSegment, key, v)
		case keyActiveSize:
			seg.ActiveSize, err = b.size(recSegment, key, v)
		case keyRequestedSize:
			seg.RequestedSize, err = b.size(recSegment, key, v)
		case keyStream:
			seg.Stream, err = b.bits(recSegment, key, v)
		case keySegmentType:
			var id trace.StringID
			id, err = b.text(recSegment, key, v)
			seg.Type = b.strings.Text(id)
		case keySegmentPoolID:
			seg.Pool, ok = b.pool(v)
			seg.HasPool = ok
		case keyExpandable:
			seg.Expandable, ok = v.AsBool()
			row.saysExpandable = ok
		case keyFrames:
			if seg.Stack, ok = b.stack(v); !ok {
				seg.Stack = trace.NoStack
			}
		case keyBlocks:
			seg.Blocks, err = b.blocksOf(v)
		default:
			ok = false
		}
		if err == nil && !ok {
			seg.Extra, err = b.extra(seg.Extra, pairs[2*i], v)
		}
		if err != nil {
			return 0, err
		}
	}
	b.addressBlocks(seg)
	if err := b.boundSegment(&row); err != nil {
		return 0, err
	}
	return pickle.MakeRecord(recSegment, b.segments.add(row)), nil
}

// blocksOf returns the blocks in a list.
func (b *builder) blocksOf(v pickle.Value) ([]trace.Block, error) {
	if b.machine.KindOf(v) != pickle.List {
		return nil, &fieldError{recSegment, keyBlocks, b.machine.KindOf(v).String(), "a list of blocks"}
	}
	blocks, bad, err := listed(&b.blocks, recBlock, b.machine.Items(v))
	if bad != 0 {
		return nil, &fieldError{recSegment, keyBlocks, b.machine.KindOf(bad).String(), "a list of blocks"}
	}
	return blocks, err
}

// addressBlocks fills in the addresses that PyTorch 2.0 leaves out.
func (b *builder) addressBlocks(seg *trace.Segment) {
	at := seg.Address
	for i := range seg.Blocks {
		if block := &seg.Blocks[i]; block.Address == 0 {
			block.Address = at
		}
		at += seg.Blocks[i].Size
	}
}

func (b *builder) block(s *shape, pairs []pickle.Value) (pickle.Value, error) {
	var block trace.Block
	var err error
	requested := false
	for i, key := range s.ids {
		if key == keySkip {
			continue
		}
		v := pairs[2*i+1]
		ok := true
		switch key {
		case keyAddress:
			block.Address, err = b.bits(recBlock, key, v)
		case keySize:
			block.Size, err = b.size(recBlock, key, v)
		case keyRequestedSize:
			block.RequestedSize, err = b.size(recBlock, key, v)
			requested = true
		case keyState:
			var id trace.StringID
			id, err = b.text(recBlock, key, v)
			block.SetState(b.strings.Text(id))
		case keyFrames:
			if block.Stack, ok = b.stack(v); !ok {
				block.Stack = trace.NoStack
			}
		case keyHistory:
			block.History, ok, err = b.history(v)
		default:
			ok = false
		}
		if err == nil && !ok {
			block.Extra, err = b.extra(block.Extra, pairs[2*i], v)
		}
		if err != nil {
			return 0, err
		}
	}
	if len(block.History) > 0 { // the last user comes first
		if block.Stack == trace.NoStack {
			block.Stack = block.History[0].Stack
		}
		if !requested {
			block.RequestedSize = block.History[0].RealSize
		}
	}
	return pickle.MakeRecord(recBlock, b.blocks.add(block)), nil
}

// history returns the entries of a block's history.
func (b *builder) history(v pickle.Value) ([]trace.Use, bool, error) {
	if b.machine.KindOf(v) != pickle.List {
		return nil, false, nil
	}
	uses, bad, err := listed(&b.uses, recUse, b.machine.Items(v))
	if uses == nil {
		uses = []trace.Use{}
	}
	return uses, bad == 0, err
}

// listed returns the rows of one table that a list names, which as a rule are
// one run; or the first item that is something else. No row is given away
// twice: a file could name the same one very often.
func listed[T any](r *rows[T], rec uint8, items []pickle.Value) (all []T, bad pickle.Value, err error) {
	for _, item := range items {
		got, first, n, ok := item.AsRun()
		if !ok || got != rec {
			return nil, item, nil
		}
		if r.given += n; r.given > r.n {
			return nil, 0, fmt.Errorf("%s is listed twice", recNames[rec])
		}
		part := r.slice(first, n)
		if len(items) == 1 {
			return part, 0, nil
		}
		all = append(all, part...)
	}
	return all, 0, nil
}

func (b *builder) use(s *shape, pairs []pickle.Value) (pickle.Value, error) {
	var use trace.Use
	var err error
	for i, key := range s.ids {
		if key == keySkip {
			continue
		}
		v := pairs[2*i+1]
		ok := true
		switch key {
		case keyAddr:
			use.Addr, err = b.bits(recUse, key, v)
		case keyRealSize:
			use.RealSize, err = b.size(recUse, key, v)
		case keyFrames:
			if use.Stack, ok = b.stack(v); !ok {
				use.Stack = trace.NoStack
			}
		default:
			ok = false
		}
		if err == nil && !ok {
			use.Extra, err = b.extra(use.Extra, pairs[2*i], v)
		}
		if err != nil {
			return 0, err
		}
	}
	return pickle.MakeRecord(recUse, b.uses.add(use)), nil
}
