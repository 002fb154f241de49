package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
)

// level is one resolution of the history.
type level struct {
	name  string
	every time.Duration // between rows; 0: as they come
	keep  time.Duration // 0: as long as anything
	block time.Duration // how much time a block covers
}

// levels are the resolutions, the finest first. Blocks of one are made of those
// of the one before, so that a block must be shorter than what is kept there.
var levels = [...]level{
	{name: "1s", keep: 2 * time.Hour, block: 2 * time.Minute},
	{name: "10s", every: 10 * time.Second, keep: 24 * time.Hour, block: 30 * time.Minute},
	{name: "60s", every: time.Minute, block: 3 * time.Hour},
}

// journalRows is how many rows of each GPU the journal of a session holds before
// they become a block.
const journalRows = 120

// store is what is kept, by session.
type store struct {
	hub       *hub.Hub
	sessions  *hub.Stream // the last hello of each
	journal   *hub.Stream // what is in no block yet
	levels    [len(levels)]*hub.Stream
	alarms    *hub.Stream // each alarm under its identity
	snapshots *hub.Objects

	parts   partCache
	mu      sync.Mutex
	indices map[string]*index // by session
}

// openStore opens the streams. keep is how long anything stays.
func openStore(ctx context.Context, h *hub.Hub, keep time.Duration) (*store, error) {
	st := &store{hub: h, indices: map[string]*index{}}
	open := func(to **hub.Stream, name string, perSubject int64) error {
		s, err := h.Stream(ctx, hub.StreamOptions{Name: "ASHLAR_" + name, Prefix: "ashlar." + name, MaxAge: keep, PerSubject: perSubject})
		*to = s
		return err
	}
	err := errors.Join(open(&st.sessions, "sessions", 1), open(&st.journal, "journal", 0), open(&st.alarms, "alarms", 1))
	for i, l := range levels {
		err = errors.Join(err, open(&st.levels[i], l.name, 0))
	}
	if err != nil {
		return nil, err
	}
	st.snapshots, err = h.Objects(ctx, snapshotStore, keep)
	return st, err
}

const snapshotStore = "ASHLAR_snapshots"

// DefaultKeep is how long the history stays unless the user says otherwise.
const DefaultKeep = 7 * 24 * time.Hour

// Snapshots opens the snapshots of alarms for those who read them.
func Snapshots(ctx context.Context, h *hub.Hub) (*hub.Objects, error) {
	return h.Objects(ctx, snapshotStore, DefaultKeep)
}

// put stores the only message of a subject.
func put(ctx context.Context, s *hub.Stream, subject string, document any) error {
	data, err := json.Marshal(document)
	if err != nil {
		return err
	}
	return s.Put(ctx, subject, data)
}

// hello returns what a session said of itself.
func (st *store) hello(ctx context.Context, id string) (Hello, error) {
	var h Hello
	m, err := st.sessions.Last(ctx, id)
	if err == nil {
		err = json.Unmarshal(m.Data, &h)
	}
	return h, err
}

// place is how far a session has come in a stream.
type place struct {
	last    uint64 // the sequence number of its last message there, 0 if there is none
	through int64  // the seq of its last row there, 0 if there is none
}

func (st *store) place(ctx context.Context, s *hub.Stream, id string) (place, error) {
	m, err := s.Last(ctx, id)
	if errors.Is(err, hub.ErrNone) {
		return place{}, nil
	}
	if err != nil {
		return place{}, err
	}
	h, _, err := readHead(m.Data)
	return place{m.Seq, h.last}, err
}

// tail is the part of a session that is in its journal.
type tail struct {
	place // in the journal
	fine  place
	rows  []Row
}

// readTail reads the journal. Rows that are in a block already are left out: a
// process may have been killed between writing the block and emptying the journal.
func (st *store) readTail(ctx context.Context, id string) (t tail, err error) {
	if t.fine, err = st.place(ctx, st.levels[0], id); err != nil {
		return t, err
	}
	t.through = t.fine.through
	for m, err := range st.journal.All(ctx, id) {
		if err != nil {
			return t, err
		}
		h, spans, err := decode(m.Data)
		if err != nil {
			return t, err
		}
		t.last = m.Seq
		if h.last <= t.fine.through {
			continue
		}
		for i := range spans {
			t.rows = append(t.rows, spans[i].Row)
		}
		t.through = max(t.through, h.last)
	}
	return t, nil
}

// append adds rows, which are newer than the tail, to the journal.
func (st *store) append(ctx context.Context, id string, t *tail, rows []Row) error {
	spans := make([]span, len(rows))
	for i, r := range rows {
		spans[i] = single(r)
	}
	seq, err := st.journal.Append(ctx, id, encode(spans, false), t.last)
	if err != nil {
		return err
	}
	t.last, t.through = seq, rows[len(rows)-1].V[Seq]
	t.rows = append(t.rows, rows...)
	return nil
}

// full reports whether the journal should become a block.
func (t *tail) full() bool {
	gpus := map[int]int{}
	for i := range t.rows {
		gpus[t.rows[i].GPU]++
		if gpus[t.rows[i].GPU] >= journalRows {
			return true
		}
	}
	return false
}

// pack makes a block of the journal, and empties it.
func (st *store) pack(ctx context.Context, id string, t *tail) error {
	spans := make([]span, len(t.rows))
	for i, r := range t.rows {
		spans[i] = single(r)
	}
	seq, err := st.levels[0].Append(ctx, id, encode(spans, false), t.fine.last)
	if err != nil {
		return err
	}
	t.fine = place{seq, t.through}
	t.rows = t.rows[:0]
	if err := st.journal.Purge(ctx, id, t.last+1); err != nil {
		return err
	}
	t.last = 0
	return nil
}

// roll makes a block of a level from those of the finer one that are in none
// yet, if they cover enough time. It returns the time of the row, in us, with
// which it is worth trying again.
func (st *store) roll(ctx context.Context, id string, to int) (again int64, err error) {
	done, err := st.place(ctx, st.levels[to], id)
	if err != nil {
		return 0, err
	}
	var spans []span
	var begin, end int64
	for m, err := range st.levels[to-1].All(ctx, id) {
		if err != nil {
			return 0, err
		}
		h, _, err := readHead(m.Data)
		if err != nil || h.last <= done.through {
			continue // damaged: one block less
		}
		_, more, err := decode(m.Data)
		if err != nil {
			continue
		}
		if spans == nil {
			begin = h.begin
		}
		spans, end = append(spans, more...), h.end
	}
	enough := (levels[to].block - levels[to-1].block/2).Microseconds()
	if end-begin < enough {
		return begin + enough, nil
	}
	_, err = st.levels[to].Append(ctx, id, encode(join(spans, levels[to].every), true), done.last)
	return end + enough, err
}

// join puts rows of one GPU and one interval together.
func join(spans []span, every time.Duration) []span {
	slices.SortStableFunc(spans, func(a, b span) int { return a.GPU - b.GPU })
	out := spans[:0:0]
	interval := func(s *span) int64 { return s.V[Time] / every.Microseconds() }
	for i := range spans {
		s := &spans[i]
		if n := len(out); n > 0 && out[n-1].GPU == s.GPU && interval(&out[n-1]) == interval(s) {
			out[n-1].add(s)
		} else {
			out = append(out, *s)
		}
	}
	return out
}

// expire removes blocks of a session that are older than their level keeps and
// live on in the next.
func (st *store) expire(ctx context.Context, id string, at int, now time.Time) error {
	next, err := st.place(ctx, st.levels[at+1], id)
	if err != nil {
		return err
	}
	cut := now.Add(-levels[at].keep).UnixMicro()
	for m, err := range st.levels[at].All(ctx, id) {
		if err != nil {
			return err
		}
		h, _, err := readHead(m.Data)
		if err == nil && (h.end >= cut || h.last > next.through) {
			return nil
		}
		if err := st.levels[at].Purge(ctx, id, m.Seq+1); err != nil {
			return err
		}
	}
	return nil
}

// history returns the rows of a session in order, each time at the finest
// resolution that is kept.
func (st *store) history(ctx context.Context, id string) ([]span, error) {
	t, err := st.readTail(ctx, id)
	if err != nil {
		return nil, err
	}
	parts := [len(levels) + 1][]span{}
	for _, r := range t.rows {
		parts[0] = append(parts[0], single(r))
	}
	from := int64(maxNumber)
	if len(t.rows) > 0 {
		from = t.rows[0].V[Seq]
	}
	for i, s := range st.levels {
		oldest := from
		for m, err := range s.All(ctx, id) {
			if err != nil {
				return nil, err
			}
			h, spans, err := decode(m.Data)
			if err != nil {
				continue
			}
			for j := range spans {
				if spans[j].V[Seq] < from {
					parts[i+1] = append(parts[i+1], spans[j])
				}
			}
			oldest = min(oldest, h.first)
		}
		from = oldest
	}
	slices.Reverse(parts[:])
	return slices.Concat(parts[:]...), nil
}

// bytes is how much the streams hold.
func (st *store) bytes(ctx context.Context) (uint64, error) {
	total := uint64(0)
	for _, s := range slices.Concat([]*hub.Stream{st.sessions, st.journal, st.alarms}, st.levels[:]) {
		state, err := s.State(ctx)
		if err != nil {
			return 0, err
		}
		total += state.Bytes
	}
	objects, err := st.snapshots.List(ctx)
	for _, o := range objects {
		total += o.Bytes
	}
	return total, err
}

// shrink removes the oldest and finest until the streams hold at most the given
// number of bytes: blocks level by level, then snapshots, then sessions that do not live and alarms. It reports whether
// anything was removed.
func (st *store) shrink(ctx context.Context, most uint64, letGo func(id string) bool) (removed bool, err error) {
	for {
		total, err := st.bytes(ctx)
		if err != nil || total <= most {
			return removed, err
		}
		cut, err := st.removeOldest(ctx, letGo)
		if err != nil || !cut {
			return removed, err
		}
		removed = true
	}
}

func (st *store) removeOldest(ctx context.Context, letGo func(id string) bool) (bool, error) {
	for _, s := range st.levels {
		state, err := s.State(ctx)
		if err != nil {
			return false, err
		}
		if state.Messages > 0 {
			return true, s.Purge(ctx, "", state.First+(state.Last-state.First)/8+1)
		}
	}
	objects, err := st.snapshots.List(ctx)
	if err != nil {
		return false, err
	}
	if len(objects) > 0 {
		return true, st.snapshots.Delete(ctx, objects[0].Name)
	}
	if removed, err := st.removeSessions(ctx, letGo); removed || err != nil {
		return removed, err
	}
	state, err := st.alarms.State(ctx)
	if err != nil || state.Messages == 0 {
		return false, err
	}
	return true, st.alarms.Purge(ctx, "", state.First+(state.Last-state.First)/8+1)
}

// removeSessions removes the oldest eighth of the sessions that do not live.
func (st *store) removeSessions(ctx context.Context, letGo func(id string) bool) (removed bool, err error) {
	state, err := st.sessions.State(ctx)
	if err != nil || state.Messages == 0 {
		return false, err
	}
	journal, err := st.journal.State(ctx) // what comes meanwhile stays
	if err != nil {
		return false, err
	}
	var old []hub.Message
	enough := errors.New("enough")
	err = st.sessions.Each(ctx, state.First, func(m hub.Message) error {
		if letGo(m.Subject) {
			old = append(old, m)
		}
		if uint64(len(old)) > state.Messages/8 {
			return enough
		}
		return nil
	})
	if err != nil && !errors.Is(err, enough) {
		return false, err
	}
	for _, m := range old {
		err := errors.Join(st.journal.Purge(ctx, m.Subject, journal.Last+1), st.sessions.Purge(ctx, m.Subject, m.Seq+1))
		if err != nil {
			return removed, err
		}
		removed = true
	}
	return removed, nil
}

// limitedReader fails, rather than ends, behind its limit.
type limitedReader struct {
	r    io.Reader
	left int64
}

var errTooLong = fmt.Errorf("it is longer than is taken")

func (l *limitedReader) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, errTooLong
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.left+1)])
	if l.left -= int64(n); l.left < 0 {
		return 0, errTooLong
	}
	return n, err
}
