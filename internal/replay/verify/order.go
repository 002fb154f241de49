package verify

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
)

// startOrder is the order of the objects that were there before the first event.
// From 2.12 on it decides between free blocks of one size, and no file has it: it
// follows from the choices that the trace shows, which must not contradict each
// other.
type startOrder struct {
	objects []uint64       // number -> address at the start
	shown   map[before]int // -> the row that shows it
}

// before says that one object comes before another.
type before struct{ first, second uint64 }

// maxTied is how many of the blocks that were not taken are remembered: where
// thousands are alike, all pairs would be too many.
const maxTied = 256

// ordered returns the options with which an allocator asks for the order of the
// start.
func (p *player) ordered() []alloc.Option {
	if p.config.start.Kind != start.Rebuilt || alloc.DifferencesOf(p.config.version).Order == alloc.ByAddress {
		return nil
	}
	p.order = &startOrder{shown: map[before]int{}}
	return []alloc.Option{alloc.WithStartOrder(p.order.number), alloc.WithTies(p.tie)}
}

// number gives an object the next number: they are asked for by address.
func (o *startOrder) number(addr uint64) uint32 {
	o.objects = append(o.objects, addr)
	return uint32(len(o.objects))
}

// tie says which of several blocks the trace takes first, unless it took the others
// before that one at another time.
func (p *player) tie(tied []alloc.Tie, release bool) int {
	n := p.nextOf(tied, release)
	if n < 0 {
		return 0
	}
	it := tied[n].Object
	for _, t := range tied {
		if _, other := p.order.shown[before{t.Object, it}]; other {
			return 0
		}
	}
	for i, t := range tied[:min(len(tied), maxTied)] {
		if _, known := p.order.shown[before{it, t.Object}]; !known && i != n {
			p.order.shown[before{it, t.Object}] = p.pos
		}
	}
	return n
}

// nextOf finds the one of the blocks that the call allocates, or that it releases
// next; -1 if it is none of them.
func (p *player) nextOf(tied []alloc.Tie, release bool) int {
	for row := p.pos; row < p.rows.Len(); row++ {
		a := p.rows.Action(row)
		if release && isRelease(a) || !release && a == alloc.ActionAlloc {
			addr := p.rows.addr(row)
			if n := slices.IndexFunc(tied, func(t alloc.Tie) bool { return t.Block.Addr <= addr && addr < t.Block.End() }); n >= 0 {
				return n
			}
		}
		if isCall(a) {
			break
		}
	}
	return -1
}

// settle looks for an order of the start that explains every choice. If there is
// none, the first choice that closes a circle is a difference.
func (p *player) settle() {
	if p.order == nil || p.diff != nil {
		return
	}
	p.numbers = map[uint64]uint32{}
	after := map[uint64][]before{}
	for b := range p.order.shown {
		after[b.first] = append(after[b.first], b)
	}
	for _, list := range after { // a map has no order, the answer should
		slices.SortFunc(list, func(x, y before) int { return cmp.Compare(y.second, x.second) })
	}
	state := map[uint64]uint8{} // 1: being looked at, 2: done
	var reversed []uint64
	var visit func(x uint64) bool
	visit = func(x uint64) bool {
		state[x] = 1
		for _, b := range after[x] {
			if state[b.second] == 1 || state[b.second] == 0 && !visit(b.second) {
				if p.diff == nil {
					p.pos = p.order.shown[b]
					p.note(replay.DiffEvent, "no order of the blocks before the first event explains what is taken", p.rows.At(p.pos).String(), "another of the same size")
				}
				return false
			}
		}
		state[x] = 2
		reversed = append(reversed, x)
		return true
	}
	for _, x := range slices.Backward(p.objects()) {
		if state[x] == 0 && !visit(x) {
			return
		}
	}
	for i, x := range reversed {
		p.numbers[p.addressOf(x)] = uint32(len(reversed) - i)
	}
}

// objects lists what the order is about, as ties name it.
func (p *player) objects() []uint64 {
	if alloc.DifferencesOf(p.config.version).Order == alloc.BySegment {
		return p.order.objects // addresses of segments
	}
	numbers := make([]uint64, len(p.order.objects))
	for i := range numbers {
		numbers[i] = uint64(i) + 1
	}
	return numbers
}

// addressOf returns the address at the start of an object that a tie names.
func (p *player) addressOf(object uint64) uint64 {
	if alloc.DifferencesOf(p.config.version).Order == alloc.BySegment {
		return object
	}
	return p.order.objects[object-1]
}
