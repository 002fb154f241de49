package verify

import (
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
	objects []uint64          // number -> address at the start
	after   map[uint64][]edge // object -> those that come after it
}

type edge struct {
	object uint64
	row    int // that shows it
}

// ordered returns the options with which an allocator asks for the order of the
// start.
func (p *player) ordered() []alloc.Option {
	if p.config.start.Kind != start.Rebuilt || alloc.DifferencesOf(p.config.version).Order == alloc.ByAddress {
		return nil
	}
	p.order = &startOrder{after: map[uint64][]edge{}}
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
	for i, t := range tied {
		if i != n && slices.ContainsFunc(p.order.after[t.Object], func(e edge) bool { return e.object == it }) {
			return 0
		}
	}
	for i, t := range tied {
		if i != n && !slices.ContainsFunc(p.order.after[it], func(e edge) bool { return e.object == t.Object }) {
			p.order.after[it] = append(p.order.after[it], edge{t.Object, p.pos})
		}
	}
	return n
}

// nextOf finds the first of the blocks that the call allocates or releases.
func (p *player) nextOf(tied []alloc.Tie, release bool) int {
	for row := p.pos; row < p.rows.Len(); row++ {
		a := p.rows.Action(row)
		if isRelease(a) != release {
			if isCall(a) && (release || a != alloc.ActionAlloc) {
				return -1
			}
			if release || a != alloc.ActionAlloc {
				continue
			}
		}
		addr := p.rows.addr(row)
		n := slices.IndexFunc(tied, func(t alloc.Tie) bool { return t.Block.Addr <= addr && addr < t.Block.End() })
		if n >= 0 || a == alloc.ActionAlloc {
			return n
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
	state := map[uint64]uint8{} // 1: being looked at, 2: done
	var reversed []uint64
	var visit func(x uint64) bool
	visit = func(x uint64) bool {
		state[x] = 1
		for _, e := range p.order.after[x] {
			if state[e.object] == 1 || state[e.object] == 0 && !visit(e.object) {
				if p.diff == nil {
					p.pos = e.row
					p.note(replay.DiffEvent, "no order of the blocks before the first event explains what is taken", p.rows.At(e.row).String(), "another of the same size")
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
