package oracle

import (
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
)

// fields notes which of an object's expected keys were read.
type fields map[string]bool

// complete fails unless every key was read.
func (p *puller) complete(what string, seen fields, keys ...string) {
	var missing []string
	for _, k := range keys {
		if !seen[k] {
			missing = append(missing, strconv.Quote(k))
		}
	}
	if missing != nil {
		p.failf("a %s without %s", what, strings.Join(missing, ", "))
	}
}

// segment reads one segment of the final snapshot; keys it does not know are
// left out of the comparison.
func (p *puller) segment() alloc.Segment {
	var s alloc.Segment
	seen := fields{}
	p.object(func(key string) {
		seen[key] = true
		switch key {
		case "device":
			s.Device = p.index()
		case "address":
			s.Address = p.unsigned()
		case "total_size":
			s.TotalSize = p.unsigned()
		case "allocated_size":
			s.AllocatedSize = p.unsigned()
		case "active_size":
			s.ActiveSize = p.unsigned()
		case "requested_size":
			s.RequestedSize = p.unsigned()
		case "stream":
			s.Stream = p.handle()
		case "segment_type":
			switch t := p.text(); t {
			case "large":
				s.Large = true
			case "small":
			default:
				p.failf("unknown segment_type %.40q; known are small, large", t)
			}
		case "segment_pool_id":
			s.Pool = p.poolID()
		case "is_expandable":
			s.Expandable = p.boolean()
		case "blocks":
			p.list(func(int) { s.Blocks = append(s.Blocks, p.block()) })
		default:
			p.skip()
		}
	})
	p.complete("segment", seen, "device", "address", "total_size", "allocated_size", "active_size",
		"requested_size", "stream", "segment_type", "segment_pool_id", "is_expandable", "blocks")
	return s
}

func (p *puller) block() alloc.Block {
	var b alloc.Block
	seen := fields{}
	p.object(func(key string) {
		seen[key] = true
		switch key {
		case "address":
			b.Address = p.unsigned()
		case "size":
			b.Size = p.unsigned()
		case "requested_size":
			b.RequestedSize = p.unsigned()
		case "state":
			b.State = p.blockState()
		default:
			p.skip()
		}
	})
	p.complete("block", seen, "address", "size", "requested_size", "state")
	return b
}

func (p *puller) blockState() alloc.BlockState {
	name := p.text()
	s, ok := alloc.ParseBlockState(name)
	if !ok {
		p.failf("unknown state of a block %.40q", name)
	}
	return s
}
