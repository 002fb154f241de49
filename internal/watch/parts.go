package watch

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
)

// index lists the blocks of a session by what they cover, so that a curve reads
// only those that it needs. Blocks do not change: they come, and they go.
type index struct {
	mu     sync.Mutex
	blocks [len(levels)][]block
}

type block struct {
	head
	at uint64 // its sequence number in the stream
}

// maxIndices is how many sessions are listed at once.
const maxIndices = 4096

// index returns that of a session, locked, and up to date unless there is an error.
func (st *store) index(ctx context.Context, id string) (*index, error) {
	st.mu.Lock()
	x := st.indices[id]
	if x == nil {
		if len(st.indices) >= maxIndices {
			clear(st.indices)
		}
		x = &index{}
		st.indices[id] = x
	}
	st.mu.Unlock()
	x.mu.Lock()
	return x, x.renew(ctx, st, id)
}

// renew adds the blocks that have come, and drops those that are gone.
func (x *index) renew(ctx context.Context, st *store, id string) error {
	for i, s := range st.levels {
		list := x.blocks[i]
		next := uint64(1)
		if n := len(list); n > 0 {
			m, err := s.From(ctx, id, list[0].at)
			if err != nil && !errors.Is(err, hub.ErrNone) {
				return err
			}
			gone := func(b block) bool { return err != nil || b.at < m.Seq }
			next = list[n-1].at + 1
			list = slices.DeleteFunc(list, gone)
		}
		for m, err := range s.AllFrom(ctx, id, next) {
			if err != nil {
				return err
			}
			if h, _, err := readHead(m.Data); err == nil { // damaged: one block less
				list = append(list, block{h, m.Seq})
			}
		}
		x.blocks[i] = list
	}
	return nil
}

// indexAll lists the blocks of all sessions, and calls f with each block, the
// coarsest level first: covered is the last seq of the session that a coarser level
// has.
func (st *store) indexAll(ctx context.Context, f func(id string, h head, data []byte, covered int64)) error {
	all := map[string]*index{}
	covered := map[string]int64{}
	for i := len(levels) - 1; i >= 0; i-- {
		for m, err := range st.levels[i].All(ctx, "*") {
			if err != nil {
				return err
			}
			h, _, err := readHead(m.Data)
			if err != nil {
				continue // damaged: one block less
			}
			x := all[m.Subject]
			if x == nil {
				x = &index{}
				all[m.Subject] = x
			}
			x.blocks[i] = append(x.blocks[i], block{h, m.Seq})
			f(m.Subject, h, m.Data, covered[m.Subject])
		}
		for id, x := range all {
			if n := len(x.blocks[i]); n > 0 {
				covered[id] = max(covered[id], x.blocks[i][n-1].last)
			}
		}
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	for id, x := range all {
		if st.indices[id] == nil && len(st.indices) < maxIndices {
			st.indices[id] = x
		}
	}
	return nil
}

// piece is a block that a curve needs, and which rows of it.
type piece struct {
	block
	level      int
	after, end int64 // seq: rows behind the one, and before the other
}

// pieces lists the blocks that cover a time, oldest first: at the coarsest level
// whose rows are at most so far apart; before that begins at coarser ones, and
// where that ends at finer ones.
func (x *index) pieces(from, to int64, apart time.Duration) []piece {
	best := 0
	for i, l := range levels {
		if l.every <= apart && len(x.blocks[i]) > 0 {
			best = i
		}
	}
	var out []piece
	add := func(level int, after, end int64) {
		for _, b := range x.blocks[level] {
			if b.begin < to && b.end >= from && b.last > after && b.first < end {
				out = append(out, piece{b, level, after, end})
			}
		}
	}
	end := int64(maxNumber)
	for i := best; i < len(levels); i++ {
		add(i, 0, end)
		if list := x.blocks[i]; len(list) > 0 {
			end = min(end, list[0].first)
		}
	}
	after := int64(0)
	for i := best; i >= 0; i-- {
		if i < best {
			add(i, after, maxNumber)
		}
		if list := x.blocks[i]; len(list) > 0 {
			after = max(after, list[len(list)-1].last)
		}
	}
	slices.SortStableFunc(out, func(a, b piece) int { return cmp.Compare(a.first, b.first) })
	return out
}

// strip is one number of one GPU in a block.
type strip struct {
	gpu                        int
	seq, time, low, high, last []int64
}

// partKey names what was read of a block.
type partKey struct {
	level  int
	at     uint64
	number int
}

// partCache keeps what was read last. What it holds is not changed.
type partCache struct {
	mu    sync.Mutex
	parts map[partKey]*list.Element
	order list.List // the latest first
	rows  int
}

type cachedPart struct {
	key    partKey
	strips []strip
	rows   int
}

// maxCachedRows is about 16 MB.
const maxCachedRows = 400_000

func (c *partCache) get(key partKey) ([]strip, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.parts[key]
	if e == nil {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cachedPart).strips, true
}

func (c *partCache) put(key partKey, strips []strip) {
	p := &cachedPart{key: key, strips: strips}
	for _, s := range strips {
		p.rows += len(s.seq)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parts[key] != nil {
		return
	}
	if c.parts == nil {
		c.parts = map[partKey]*list.Element{}
	}
	c.parts[key] = c.order.PushFront(p)
	for c.rows += p.rows; c.rows > maxCachedRows; {
		old := c.order.Remove(c.order.Back()).(*cachedPart)
		delete(c.parts, old.key)
		c.rows -= old.rows
	}
}

// strips reads one number of a block.
func (st *store) strips(ctx context.Context, id string, p piece, number int) ([]strip, error) {
	key := partKey{p.level, p.at, number}
	if s, ok := st.parts.get(key); ok {
		return s, nil
	}
	m, err := st.levels[p.level].From(ctx, id, p.at)
	if err != nil || m.Seq != p.at {
		return nil, err // gone meanwhile
	}
	s, err := decodeNumber(m.Data, number)
	if err != nil {
		return nil, nil // damaged: one block less
	}
	st.parts.put(key, s)
	return s, nil
}

// decodeNumber reads one number of a block, and passes over the others.
func decodeNumber(data []byte, number int) ([]strip, error) {
	h, body, err := unpackBlock(data)
	if err != nil {
		return nil, err
	}
	gauge := slices.Index(Gauges[:], number)
	d := reader{body}
	var strips []strip
	for range d.count(1024) {
		s := strip{gpu: int(d.integer())}
		rows := d.count(uint64(len(d.left)))
		for c := range columns {
			switch c {
			case Seq:
				s.seq = d.numbers(rows)
			case Time:
				s.time = d.numbers(rows)
			case number:
				s.last = d.numbers(rows)
			default:
				d.skip(rows)
			}
		}
		switch number {
		case Seq:
			s.last = s.seq
		case Time:
			s.last = s.time
		}
		s.low, s.high = s.last, s.last
		for g := range Gauges {
			switch {
			case !h.wide:
			case g == gauge:
				s.low, s.high = d.numbers(rows), d.numbers(rows)
			default:
				d.skip(2 * rows)
			}
		}
		strips = append(strips, s)
	}
	if d.left == nil || len(strips) == 0 {
		return nil, errBlock
	}
	return strips, nil
}
